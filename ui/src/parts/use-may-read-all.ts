import { mayI } from '../api/session.ts'
import { usePage } from './page.ts'
import { useLoad } from './use-load.ts'

/** Whether the user may list the events of all clusters at once; false until known. */
export function useMayReadAll(): boolean {
  const { client } = usePage()
  const access = { verb: 'list', group: '', resource: 'events', cluster: '*', namespace: '' }
  return useLoad((signal) => mayI(client, access, signal), { what: [client] }).data === true
}

import type { JSX } from 'preact'
import type { Basis } from '../../api/answer.ts'
import { clockTime } from '../../model/times.ts'
import { Moment } from '../event-time.tsx'
import { usePage } from '../page.ts'
import { PlainText } from '../plain-text.tsx'
import { useRetry } from '../use-retry.ts'

export interface DataNotesProps {
  /** The bases of all data below; undefined for data that is not loaded. */
  readonly bases: readonly (Basis | undefined)[]
  readonly isBusy: boolean
}

/**
 * Says how far the data below can be trusted. While it comes from memory, newer data is requested.
 */
export function DataNotes({ bases, isBusy }: DataNotesProps): JSX.Element | null {
  const { nowMs, refresh } = usePage()
  const known = bases.filter((basis) => basis !== undefined)
  const stale = known.find(({ isFromMemory }) => isFromMemory)
  useRetry({ failure: stale, isBusy, retry: refresh })
  const warnings = new Set(known.flatMap((basis) => basis.warnings))
  if (stale === undefined && warnings.size === 0) return null
  return (
    <div class="data-notes" role="status">
      {stale !== undefined && (
        <p>
          etcd does not respond: this is what the replica has in memory, as of{' '}
          <Moment ms={stale.atMs}>{clockTime(stale.atMs, nowMs)}</Moment>.
        </p>
      )}
      {[...warnings].map((text) => (
        <p key={text}>
          The server warns: <PlainText text={text} />
        </p>
      ))}
    </div>
  )
}

import { objectOf } from '../memory/events.ts'
import { type Load, type LoadOutcome, runLoad } from '../support/h2load.ts'
import { median } from '../support/request-costs.ts'
import { FIRST_NAME, LISTED, LISTED_NAMESPACE, type Side, type TidingsSide } from './sides.ts'
import type { Sample } from './turns.ts'
import {
  type ApiRequest,
  cpuOf,
  createIn,
  eventsPath,
  ONE,
  responseBytes,
  type Work,
} from './work.ts'

export const CREATE = 'create'

const MANY = { connections: 8, streams: 32 }
const FEW = { connections: 2, streams: 2 }
const listed = eventsPath(LISTED_NAMESPACE)
const create = createIn('created')
const selector = `fieldSelector=regarding.uid=${objectOf(0).uid}`

interface RequestKind
  extends Pick<Work, 'name' | 'ratioMax' | 'isSequential' | 'isComparable'>,
    ApiRequest {
  readonly requests: number
  readonly load: Pick<Load, 'connections' | 'streams'>
}

const compared = { isComparable: true } as const
const KINDS: readonly RequestKind[] = [
  { name: CREATE, ratioMax: 2.2, ...create, requests: 8_000, load: MANY, ...compared },
  {
    name: 'create, one by one',
    isSequential: true,
    ...create,
    requests: 200,
    load: ONE,
    ...compared,
  },
  {
    name: 'get',
    ratioMax: 1.8,
    path: `${listed}/${FIRST_NAME}`,
    requests: 12_000,
    load: MANY,
    ...compared,
  },
  { name: 'page of 500', path: `${listed}?limit=500`, requests: 200, load: FEW, ...compared },
  { name: `list of 10 in ${LISTED}`, path: `${listed}?${selector}`, requests: 6_000, load: MANY },
]

/** Each kind of request. `ours` is asked once, so that the bare server sends as many bytes. */
export function requestWorks(ours: TidingsSide): Promise<readonly Work[]> {
  return Promise.all(KINDS.map((kind) => workOf(kind, ours)))
}

async function workOf(kind: RequestKind, ours: TidingsSide): Promise<Work> {
  const { path, body, load: width, requests, ...named } = kind
  const barePath = `/bytes/${await responseBytes(ours, kind)}`
  const load = (side: Side): Promise<LoadOutcome> =>
    runLoad({
      url: `${side.url}${side.isBare === true ? barePath : path}`,
      headers: side.headers,
      amount: { requests },
      ...width,
      ...(body === undefined ? {} : { body }),
    })
  const measure = async (side: Side): Promise<Sample> => {
    const { seconds, result } = await cpuOf(side, () => load(side))
    const { perSecond, latenciesMs } = result
    return { micros: (seconds * 1e6) / requests, perSecond, latencyMs: median(latenciesMs) }
  }
  return { ...named, units: requests, load, measure }
}

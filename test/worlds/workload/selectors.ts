/** Selectors of lists, as production code parses them, and what they select by the checks' own terms. */
import { parseFieldSelector } from '../../../src/api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../../src/api/selectors/label-selector.ts'
import { eventSelector } from '../../../src/registry/read/event-selector.ts'
import type { EventSelector } from '../../../src/storage/storage.ts'

import type { Random } from '../../support/random.ts'
import type { Filter } from '../checker/lists.ts'
import { type Facets, facetsOf } from '../checker/stored-text.ts'

export interface Selector extends Filter {
  readonly selector: EventSelector | undefined
}

/** Facets repeat after the product of what they are taken modulo. */
const facetsTable: readonly Facets[] = Array.from({ length: 1_000 }, (_, facet) => facetsOf(facet))

function of(facet: number): Facets {
  return facetsTable[facet] ?? facetsOf(facet)
}

export class Selectors {
  readonly #known = new Map<string, Selector>()

  pick(random: Random): Selector {
    const kind = random.below(kinds.length)
    const facet = random.below(31)
    const key = `${kind}/${facet}`
    let found = this.#known.get(key)
    if (found === undefined) {
      found = kinds[kind]?.(of(facet), facet) ?? labels('', () => true)
      this.#known.set(key, found)
    }
    return found
  }
}

const kinds: readonly ((wanted: Facets, facet: number) => Selector)[] = [
  ({ reason }) => fields(`reason=${reason}`, ({ facet }) => of(facet).reason === reason),
  ({ type }) => fields(`type=${type}`, ({ facet }) => of(facet).type === type),
  ({ controller }) =>
    fields(`reportingController=${controller}`, ({ facet }) => of(facet).controller === controller),
  ({ reason }, facet) => {
    const other = of(facet + 1).reason
    return fields(`reason=${reason}|${other}`, (record) =>
      [reason, other].includes(of(record.facet).reason),
    )
  },
  ({ regardingName, relatedName }) =>
    fields(
      `mentions=pod/${regardingName}|node/${relatedName}`,
      ({ facet }) =>
        of(facet).regardingName === regardingName || of(facet).relatedName === relatedName,
    ),
  ({ reason, type }) =>
    fields(
      `reason=${reason},type!=${type}`,
      ({ facet }) => of(facet).reason === reason && of(facet).type !== type,
    ),
  ({ regardingUid }) =>
    fields(`regarding.uid=${regardingUid}`, ({ facet }) => of(facet).regardingUid === regardingUid),
  ({ regardingName }) =>
    fields(
      `regarding.kind=Pod,regarding.name=${regardingName},regarding.namespace=a`,
      ({ facet, namespace }) => namespace === 'a' && of(facet).regardingName === regardingName,
    ),
  ({ team }) => labels(`team=${team}`, ({ facet }) => of(facet).team === team),
  ({ lastSeenMs }) =>
    fields(`since=${timeText(lastSeenMs)}`, ({ facet }) => of(facet).lastSeenMs >= lastSeenMs),
  ({ lastSeenMs }) =>
    fields(`until=${timeText(lastSeenMs)}`, ({ facet }) => of(facet).lastSeenMs < lastSeenMs),
  ({ lastSeenMs, type }) =>
    fields(
      `since=${timeText(lastSeenMs)},until=${timeText(lastSeenMs + 20_000)},type=${type}`,
      ({ facet }) =>
        of(facet).lastSeenMs >= lastSeenMs &&
        of(facet).lastSeenMs < lastSeenMs + 20_000 &&
        of(facet).type === type,
    ),
  ({ regardingName }) =>
    fields(
      `mentions=pod/${regardingName}`,
      ({ facet }) => of(facet).regardingName === regardingName,
    ),
  ({ relatedName }) =>
    fields(`mentions=Node/${relatedName}`, ({ facet }) => of(facet).relatedName === relatedName),
  (_, number) =>
    fields(`metadata.name=key-${number}`, ({ path }) => path.endsWith(`/key-${number}`)),
  (_, number) =>
    fields(`metadata.name=key-${number}*`, ({ path }) => path.includes(`/key-${number}`)),
]

function fields(text: string, matches: Filter['matches']): Selector {
  return {
    text,
    matches,
    selector: eventSelector(parseLabelSelector(''), parseFieldSelector(text), 0),
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

function labels(text: string, matches: Filter['matches']): Selector {
  return { text, matches, selector: eventSelector(parseLabelSelector(text), [], 0) }
}

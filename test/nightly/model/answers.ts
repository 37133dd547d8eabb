/** Sends a query page by page, and compares the answer with that of the plain model. */
import type { EventApiUnderTest } from '../../support/event-api.ts'
import type { History } from './history.ts'
import { callOf, type MadeQuery } from './made-queries.ts'
import type { PlainEvent } from './plain-event.ts'
import { answer } from './plain-query.ts'

/** No list has more events; a token that leads nowhere ends here. */
const PAGES_MAX = 2_000

/** What a client has read. An event is known by its version, which no other change has. */
export interface Reading {
  readonly version: number
  readonly items: readonly number[]
  /** What the server said about the rest, after so many items. */
  readonly remaining: readonly { readonly seen: number; readonly said: number | undefined }[]
}

/** A status other than 200. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, text: string) {
    super(`${status} ${text.slice(0, 300)}`)
    this.status = status
  }
}

/** `earlier`: the version for a query of an earlier state. */
export async function readAll(
  api: EventApiUnderTest,
  query: MadeQuery,
  earlier: number,
): Promise<Reading> {
  const items: number[] = []
  const remaining: { seen: number; said: number | undefined }[] = []
  let version: number | undefined
  let token = ''
  for (let page = 0; page === 0 || token !== ''; page++) {
    if (page > PAGES_MAX) throw new Error('the pages do not end')
    const limit = query.limits[page % query.limits.length]
    const { metadata, versions } = await readPage(api, query, {
      ...(token === '' ? stateOf(query, earlier) : { continue: token }),
      ...(limit === undefined ? {} : { limit }),
    })
    version ??= metadata.version
    if (metadata.version !== version) throw new Error(`page ${page} is at ${metadata.version}`)
    items.push(...versions)
    token = metadata.token
    if (token === '') continue
    if (versions.length !== limit) throw new Error(`page ${page} has ${versions.length} items`)
    remaining.push({ seen: items.length, said: metadata.remaining })
  }
  return { version: version ?? 0, items, remaining }
}

function stateOf({ of }: MadeQuery, earlier: number): Readonly<Record<string, string | number>> {
  if (of === 'newest') return {}
  if (of === 'any') return { resourceVersion: 0 }
  return { resourceVersion: earlier, resourceVersionMatch: 'Exact' }
}

interface Page {
  readonly versions: readonly number[]
  readonly metadata: {
    readonly version: number
    readonly token: string
    readonly remaining: number | undefined
  }
}

async function readPage(
  api: EventApiUnderTest,
  query: MadeQuery,
  parameters: Readonly<Record<string, string | number>>,
): Promise<Page> {
  const { format } = query
  const { status, text, json } = await api.call(callOf(query, parameters))
  if (status !== 200) throw new Refused(status, text)
  const objects: readonly { readonly metadata: { readonly resourceVersion: string } }[] =
    format === 'table' ? json.rows.map((row: { object: unknown }) => row.object) : json.items
  return {
    versions: objects.map(({ metadata }) => Number(metadata.resourceVersion)),
    metadata: {
      version: Number(json.metadata.resourceVersion),
      token: json.metadata.continue ?? '',
      remaining: json.metadata.remainingItemCount,
    },
  }
}

/** What is wrong with the answer; undefined when it is right. */
export async function faultOf(
  history: History,
  query: MadeQuery,
  { reading, nowMs }: { readonly reading: Reading; readonly nowMs: number },
): Promise<string | undefined> {
  const all = answer(await history.at(reading.version), query, nowMs)
  return compare(all.slice(0, query.listMax), reading, isUnselected(query))
}

/** `isCounted`: the server must say how many events remain. */
export function compare(
  expected: readonly PlainEvent[],
  reading: Reading,
  isCounted: boolean,
): string | undefined {
  const at = expected.findIndex(({ version }, index) => version !== reading.items[index])
  if (at !== -1 || reading.items.length !== expected.length) {
    return `at version ${reading.version}: ${difference(expected, reading.items, at)}`
  }
  const wrong = reading.remaining.find(
    ({ seen, said }) => (isCounted || said !== undefined) && said !== expected.length - seen,
  )
  if (wrong === undefined) return undefined
  return `after ${wrong.seen} of ${expected.length} items, ${wrong.said} remain`
}

/** Then the number of remaining events is known. A namespace of all clusters is a selector, too. */
function isUnselected({ cluster, namespace, terms, labelled, order, listMax }: MadeQuery): boolean {
  if (terms.length > 0 || labelled !== undefined || order !== 'key') return false
  if (listMax !== undefined) return false
  return cluster !== '*' || namespace === ''
}

function difference(expected: readonly PlainEvent[], items: readonly number[], at: number): string {
  const place = at === -1 ? expected.length : at
  const missing = expected.filter(({ version }) => !items.includes(version))
  const known = new Set(expected.map(({ version }) => version))
  const surplus = items.filter((version) => !known.has(version))
  return [
    `${expected.length} events expected, ${items.length} read, different from item ${place}`,
    `expected there: ${shown(expected[place])}, read: ${items[place]}`,
    `missing: ${missing.slice(0, 3).map(shown).join(' ')}`,
    `not expected: ${surplus.slice(0, 3).join(' ')}`,
  ].join('; ')
}

function shown(event: PlainEvent | undefined): string {
  if (event === undefined) return 'nothing'
  const { path, version, lastSeenMs, tree } = event
  return `${path} ${version} ${lastSeenMs} ${JSON.stringify(tree).slice(0, 900)}`
}

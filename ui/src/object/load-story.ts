/** Loads the events that mention an object, as far as the user may read them. */

import type { Basis } from '../api/answer.ts'
import { ApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { type EventPage, type EventQuery, listPages } from '../api/events.ts'
import { type AboutQuestion, eventsAbout, eventsElsewhere } from '../model/about.ts'
import type { EventRow, ObjectName } from '../model/event-row.ts'
import { NO_FILTERS } from '../model/query.ts'
import { type StoryEntry, storyOf } from './story.ts'

/** Maximum number of rows; the newest ones if an object has more. */
const STORY_ROWS_MAX = 2_000

export interface Story {
  readonly entries: readonly StoryEntry[]
  /** How far back events were searched for; undefined if there are no older ones. */
  readonly reachedMs: number | undefined
  /** Says what is missing because the user may not read it; empty if nothing is. */
  readonly lack: string
  /** The requests made, for commands that print the same. */
  readonly queries: readonly EventQuery[]
  readonly bases: readonly Basis[]
  /** The lists that it is made of. */
  readonly parts: readonly Part[]
}

export interface StoryOptions {
  readonly about: ObjectName
  readonly cluster: string
  /** Fallback namespace if the user may not read all namespaces; may be empty. */
  readonly namespace: string
  /** Where to begin in history. Undefined for the events in memory. */
  readonly fromMs: number | undefined
  readonly signal: AbortSignal
  /** Called with the part of the story that is known before all of it is. */
  readonly show: (story: Story) => void
  /** The part of the story to go on from. */
  readonly before: Story | undefined
}

interface Part {
  /** Undefined if the user may not read the list. */
  readonly pages?: EventPage
  readonly query?: EventQuery
  readonly lack: string
}

const NO_PART: Part = { lack: '' }

interface PartOptions extends Omit<StoryOptions, 'show' | 'before'> {
  readonly before: Part | undefined
  readonly onPart: (part: Part) => void
}

export async function loadStory(client: ApiClient, options: StoryOptions): Promise<Story> {
  const { about, show, before } = options
  const elsewhere = eventsElsewhere(about)
  let [main, others = elsewhere === undefined ? NO_PART : undefined] = before?.parts ?? []
  const told = (): void => {
    // One list alone would make a story with gaps.
    if (main !== undefined && others !== undefined) show(storyIn([main, others], about))
  }
  const [allMain, allOthers] = await Promise.all([
    loadWhereAllowed(client, eventsAbout(about), {
      ...options,
      before: main,
      onPart: (part) => {
        main = part
        told()
      },
    }),
    elsewhere === undefined
      ? NO_PART
      : loadOthers(client, elsewhere, {
          ...options,
          before: others,
          onPart: (part) => {
            others = part
            told()
          },
        }),
  ])
  return storyIn([allMain, allOthers], about)
}

function storyIn(parts: readonly [main: Part, others: Part], about: ObjectName): Story {
  const reached = parts.flatMap(({ pages }) => pages?.reachedMs ?? [])
  // Beyond the end of one list, the other one alone would make a story with gaps.
  const reachedMs = reached.length === 0 ? undefined : Math.max(...reached)
  const rowsOf = ({ pages }: Part): readonly EventRow[] => pages?.rows ?? []
  const rows = parts
    .flatMap(rowsOf)
    .filter(({ lastMs }) => lastMs >= (reachedMs ?? Number.NEGATIVE_INFINITY))
  const [main, others] = parts
  return {
    entries: storyOf(rows, about),
    reachedMs,
    lack: main.lack || others.lack,
    bases: parts.flatMap(({ pages }) => pages?.basis ?? []),
    queries: (rowsOf(others).length === 0 ? [main] : parts).flatMap(({ query }) => query ?? []),
    parts,
  }
}

/** Loads events of all namespaces or, if that is forbidden, of the filters' namespace. */
async function loadWhereAllowed(
  client: ApiClient,
  question: AboutQuestion,
  options: PartOptions,
): Promise<Part> {
  const { namespace } = options
  try {
    return await loadPart(client, question, options)
  } catch (error) {
    if (!isForbidden(error) || question.namespace !== '' || namespace === '') throw error
    const lack = `Only events of the namespace ${namespace}: you may not read those of all namespaces.`
    return loadPart(client, { ...question, namespace }, { ...options, lack })
  }
}

/** A user who may read only one namespace sees only that namespace's events. */
async function loadOthers(
  client: ApiClient,
  question: AboutQuestion,
  options: PartOptions,
): Promise<Part> {
  try {
    return await loadPart(client, question, options)
  } catch (error) {
    if (!isForbidden(error)) throw error
    const part = {
      lack: `Only events of the namespace ${options.about.namespace}. Those of other namespaces may be related to this object, but you may not read them.`,
    }
    options.onPart(part)
    return part
  }
}

async function loadPart(
  client: ApiClient,
  { namespace, terms }: AboutQuestion,
  options: PartOptions & { readonly lack?: string },
): Promise<Part> {
  const { cluster, fromMs, signal, before, onPart } = options
  if (before !== undefined && before.query === undefined) return before
  const query: EventQuery = before?.query ?? {
    filters: { ...NO_FILTERS, cluster, namespace },
    terms,
    order: 'newest',
    ...(fromMs === undefined ? {} : { span: { fromMs } }),
  }
  const lack = before?.lack ?? options.lack ?? ''
  const tell = (pages: EventPage): Part => {
    const part = { pages, query, lack }
    onPart(part)
    return part
  }
  const asked = { ...query, rowsMax: STORY_ROWS_MAX, before: before?.pages, signal, onPage: tell }
  return tell(await listPages(client, asked))
}

function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.code === 403
}

/** Loads the events that mention an object, as far as the user may read them. */

import type { Basis } from '../api/answer.ts'
import { ApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { type EventQuery, listPages } from '../api/events.ts'
import { type AboutQuestion, eventsAbout, eventsElsewhere } from '../model/about.ts'
import type { EventRow, ObjectName } from '../model/event-row.ts'
import { NO_FILTERS } from '../model/query.ts'
import { type StoryEntry, storyOf } from './story.ts'

/** The newest ones, where an object has more. */
const STORY_ROWS_MAX = 2_000

export interface Story {
  readonly entries: readonly StoryEntry[]
  /** Older events exist that are not loaded. */
  readonly hasMore: boolean
  /** What is not there because the user may not read it; empty for nothing. */
  readonly lack: string
  /** What was asked, for commands that print the same. */
  readonly queries: readonly EventQuery[]
  readonly bases: readonly Basis[]
}

export interface StoryOptions {
  readonly about: ObjectName
  readonly cluster: string
  /** Where to look if the user may not read all namespaces; may be empty. */
  readonly namespace: string
  readonly signal: AbortSignal
}

export async function loadStory(client: ApiClient, options: StoryOptions): Promise<Story> {
  const { about } = options
  const elsewhere = eventsElsewhere(about)
  const [main, others] = await Promise.all([
    loadWhereAllowed(client, eventsAbout(about), options),
    elsewhere === undefined ? NO_PART : loadOthers(client, elsewhere, options),
  ])
  // Where one list ends, the other one alone would tell a story with holes.
  const cutMs = Math.max(cutOf(main), cutOf(others))
  const rows = [...main.rows, ...others.rows].filter(({ lastMs }) => lastMs >= cutMs)
  return {
    entries: storyOf(rows, about),
    hasMore: main.hasMore || others.hasMore,
    lack: main.lack || others.lack,
    bases: [...main.bases, ...others.bases],
    queries: others.rows.length === 0 ? main.queries : [...main.queries, ...others.queries],
  }
}

type Part = Omit<Story, 'entries'> & { readonly rows: readonly EventRow[] }

/** Events from before this time are not all loaded. */
function cutOf({ hasMore, rows }: Part): number {
  return hasMore ? (rows.at(-1)?.lastMs ?? 0) : Number.NEGATIVE_INFINITY
}

const NO_PART: Part = { rows: [], hasMore: false, lack: '', queries: [], bases: [] }

/** Events of all namespaces or, if only these are permitted, of the namespace of the filters. */
async function loadWhereAllowed(
  client: ApiClient,
  question: AboutQuestion,
  options: StoryOptions,
): Promise<Part> {
  const { namespace } = options
  try {
    return await loadPart(client, question, options)
  } catch (error) {
    if (!isForbidden(error) || question.namespace !== '' || namespace === '') throw error
    const part = await loadPart(client, { ...question, namespace }, options)
    return {
      ...part,
      lack: `Only events of the namespace ${namespace}: you may not read those of all namespaces.`,
    }
  }
}

/** Who may read one namespace only sees the events of that one. */
async function loadOthers(
  client: ApiClient,
  question: AboutQuestion,
  options: StoryOptions,
): Promise<Part> {
  try {
    return await loadPart(client, question, options)
  } catch (error) {
    if (!isForbidden(error)) throw error
    return {
      ...NO_PART,
      lack: `Only events of the namespace ${options.about.namespace}. Those of other namespaces may be related to this object, but you may not read them.`,
    }
  }
}

async function loadPart(
  client: ApiClient,
  { namespace, terms }: AboutQuestion,
  { cluster, signal }: StoryOptions,
): Promise<Part> {
  const query: EventQuery = {
    filters: { ...NO_FILTERS, cluster, namespace },
    terms,
    order: 'newest',
  }
  const pages = await listPages(client, { ...query, rowsMax: STORY_ROWS_MAX, signal })
  return {
    rows: pages.rows,
    hasMore: pages.hasMore,
    lack: '',
    queries: [query],
    bases: [pages.basis],
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && error.code === 403
}

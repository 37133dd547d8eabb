/** Loads the events that mention an object, as far as the user may read them. */

import type { Basis } from '../api/answer.ts'
import { ApiError } from '../api/api-error.ts'
import type { ApiClient } from '../api/client.ts'
import { type EventQuery, listPages } from '../api/events.ts'
import { type AboutQuestion, eventsAbout, eventsElsewhere } from '../model/about.ts'
import type { EventRow, ObjectName } from '../model/event-row.ts'
import { NO_FILTERS } from '../model/query.ts'
import { type StoryEntry, storyOf } from './story.ts'

/** Maximum number of rows; the newest ones if an object has more. */
const STORY_ROWS_MAX = 2_000

export interface Story {
  readonly entries: readonly StoryEntry[]
  /** True if older events exist that were not loaded. */
  readonly hasMore: boolean
  /** Says what is missing because the user may not read it; empty if nothing is. */
  readonly lack: string
  /** The requests made, for commands that print the same. */
  readonly queries: readonly EventQuery[]
  readonly bases: readonly Basis[]
}

export interface StoryOptions {
  readonly about: ObjectName
  readonly cluster: string
  /** Fallback namespace if the user may not read all namespaces; may be empty. */
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
  // Beyond the end of one list, the other one alone would make a story with gaps.
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

/** Events before this time were not all loaded. */
function cutOf({ hasMore, rows }: Part): number {
  return hasMore ? (rows.at(-1)?.lastMs ?? 0) : Number.NEGATIVE_INFINITY
}

const NO_PART: Part = { rows: [], hasMore: false, lack: '', queries: [], bases: [] }

/** Loads events of all namespaces or, if that is forbidden, of the filters' namespace. */
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

/** A user who may read only one namespace sees only that namespace's events. */
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

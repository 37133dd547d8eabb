import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Json, JsonObject } from '../../src/lib/json.ts'

/** Under which everything was recorded. */
export const RECORDED_GROUP = 'events.k8s.io'
const folder = join(import.meta.dirname, 'recordings')

/** Requests that were sent to a Kubernetes API server one after another, with what it answered. */
export interface Recording {
  readonly suite: string
  readonly about: string
  readonly steps: readonly Step[]
}

/** `@{name}` in it stands for what an earlier step saved, `@{ns}` for the namespace of the suite. */
export interface Request {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Instead of the caller's own token; empty for none. */
  readonly authorization?: string
  /** Sent as JSON. */
  readonly body?: Json
  /** Sent as it stands. */
  readonly raw?: string
  /** The answer is a stream: how long to listen to it at most. */
  readonly watchMs?: number
}

export interface Step extends Request {
  /** Names for later steps, each with the path of the member that it takes from the answer. */
  readonly save?: Readonly<Record<string, string>>
  /**
   * What counts when not all does: code and reason where the message spells out the other server's
   * internals, code and kind where the rest depends on what else is stored.
   */
  readonly match?: 'status-and-reason' | 'status-and-kind'
  /** What Kubernetes answered. */
  readonly answer: Expected
  /** Where we differ on purpose. */
  readonly ours?: Difference
}

/** An answer in normal form: what differs from run to run is a placeholder like `<uid>`. */
export interface Expected {
  readonly status: number
  /** Those that differ from `USUAL_HEADERS`; null for one that is not there. */
  readonly headers?: Readonly<Record<string, string | null>>
  readonly json?: Json
  /** How the JSON is laid out. */
  readonly layout?: 'pretty' | 'compact'
  /** A YAML document, as the tree it stands for. */
  readonly yaml?: Json
  /** The lines of a stream. */
  readonly frames?: readonly Json[]
  /** Whether the server ends the stream by itself. */
  readonly ends?: boolean
  readonly text?: string
  readonly base64?: string
}

/** A deliberate difference at one step, and what we promise there instead. */
export interface Difference {
  /** Where docs/compatibility.md explains it. */
  readonly difference: string
  readonly answer: Promised
}

/** What counts of our answer where it is not the recorded one. */
export interface Promised extends Expected {
  /** Members that must be there with these values; others do not count. */
  readonly includes?: JsonObject
  /** A pattern for some of the message of a Status. */
  readonly says?: string
  /** A pattern that the whole text must match. */
  readonly matches?: string
}

export const USUAL_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  'cache-control': 'no-cache, private',
}

export const SUITES: readonly string[] = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => basename(file, '.json'))

/** The recording of a suite, as if its server had served the events under this group. */
export function loadRecording(suite: string, group: string = RECORDED_GROUP): Recording {
  const text = readFileSync(join(folder, `${suite}.json`), 'utf8')
  return JSON.parse(text.replaceAll(RECORDED_GROUP, group))
}

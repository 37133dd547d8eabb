import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Json, JsonObject } from '../../../src/lib/json.ts'

/** The group of all recorded requests. */
export const RECORDED_GROUP = 'events.k8s.io'
const folder = join(import.meta.dirname, 'recordings')

/** Requests that were sent to a Kubernetes API server one after another, with its responses. */
export interface Recording {
  readonly suite: string
  readonly about: string
  readonly steps: readonly Step[]
}

/**
 * `@{name}` stands for a value that an earlier step saved, `@{ns}` for the namespace of the suite.
 */
export interface Request {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces the token of the caller; empty for none. */
  readonly authorization?: string
  /** Sent as JSON. */
  readonly body?: Json
  /** Sent verbatim. */
  readonly raw?: string
  /** The response is a stream: how long to read it at most. */
  readonly watchMs?: number
}

export interface Step extends Request {
  /** Names for later steps, each with the path of the member that is saved from the response. */
  readonly save?: Readonly<Record<string, string>>
  /**
   * What is compared when not everything is: code and reason where the message describes internals
   * of the other server, code and kind where the rest depends on other stored objects.
   */
  readonly match?: 'status-and-reason' | 'status-and-kind'
  /** The response of Kubernetes. */
  readonly answer: Expected
  /** Where we differ on purpose. */
  readonly ours?: Difference
}

/**
 * A response in normal form: a value that differs from run to run is a placeholder like `<uid>`.
 */
export interface Expected {
  readonly status: number
  /** Headers that differ from `USUAL_HEADERS`; null for a missing one. */
  readonly headers?: Readonly<Record<string, string | null>>
  readonly json?: Json
  /** The layout of the JSON. */
  readonly layout?: 'pretty' | 'compact'
  /** A YAML document, as a tree. */
  readonly yaml?: Json
  /** The lines of a stream. */
  readonly frames?: readonly Json[]
  /** Whether the server ends the stream. */
  readonly ends?: boolean
  readonly text?: string
  readonly base64?: string
}

/** A deliberate difference at one step, and our own promise. */
export interface Difference {
  /** The id of its row in docs/reference/compatibility.md. */
  readonly difference: string
  readonly answer: Promised
}

/** What is compared of our response where it is not the recorded one. */
export interface Promised extends Expected {
  /** Members that must exist with these values; others are ignored. */
  readonly includes?: JsonObject
  /** A pattern for part of the message of a Status. */
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
  const text = readFileSync(fileOf(suite), 'utf8')
  return JSON.parse(text.replaceAll(RECORDED_GROUP, group))
}

export function writeRecording(recording: Recording): void {
  writeFileSync(fileOf(recording.suite), `${JSON.stringify(recording, undefined, 2)}\n`)
}

export function fileOf(suite: string): string {
  return join(folder, `${suite}.json`)
}

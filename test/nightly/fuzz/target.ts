import type { FuzzInput } from './input.ts'

/** A request to the server. */
export type Ask = Pick<FuzzInput, 'method' | 'target' | 'headers' | 'body'>

/** The response. Of one without an end, its beginning. */
export interface Answer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A server that inputs are sent to. */
export interface Target {
  ask(ask: Ask): Promise<Answer>
  /** Failures that the server logged since the last call. */
  complaints(): readonly string[]
}

/** Chunks that are read of a response without an end. */
export const STREAM_CHUNKS_MAX = 2

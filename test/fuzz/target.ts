import type { FuzzInput } from './input.ts'

/** What is asked of a server. */
export type Ask = Pick<FuzzInput, 'method' | 'target' | 'headers' | 'body'>

/** What came back. Of an answer without an end, its beginning. */
export interface Answer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A server that inputs are thrown at. */
export interface Target {
  ask(ask: Ask): Promise<Answer>
  /** What the server itself wrote about failures since this was last asked. */
  complaints(): readonly string[]
}

/** Chunks that are read of an answer without an end. */
export const STREAM_CHUNKS_MAX = 2

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const RESULTS_FILE: string = join(import.meta.dirname, '../../test/versions.json')

/** What one suite found with one release. */
export interface Result {
  readonly part: string
  readonly version: string
  readonly suite: string
  /** Tests that passed, requests that were compared, or events that were mirrored. */
  readonly count: number
  readonly hasPassed: boolean
  /** The day of the run, such as 2026-11-17. */
  readonly on: string
}

export function results(): readonly Result[] {
  return JSON.parse(readFileSync(RESULTS_FILE, 'utf8'))
}

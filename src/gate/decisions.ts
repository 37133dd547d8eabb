/** Decisions without a reason. Promises that are shared, since most requests get one of them. */
import type { Decision } from './gate.ts'

export const ALLOWED: Promise<Decision> = Promise.resolve({ verdict: 'allow' })
export const NO_OPINION: Promise<Decision> = Promise.resolve({ verdict: 'no-opinion' })

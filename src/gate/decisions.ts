/** Decisions without a reason. */
import type { Decision } from './gate.ts'

export const ALLOWED: Decision = { verdict: 'allow' }
export const NO_OPINION: Decision = { verdict: 'no-opinion' }

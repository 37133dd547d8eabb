/** Describes the state of the server. */
import { type Check, type Trouble, troublesIn } from './health.ts'

export interface Known {
  readonly checks: readonly Check[] | undefined
  /** HTTP status with which the server refused to list its checks. */
  readonly checksCode: number | undefined
  /** When the server last responded. */
  readonly atMs: number | undefined
  /** True while the server does not respond. */
  readonly isAway: boolean
}

export interface StateText {
  /** `unknown` is not a problem: a proxy or a missing permission hides the state. */
  readonly level: 'ok' | 'unknown' | 'problem'
  readonly title: string
  readonly meaning: string
}

/** `timeText` formats a time. */
export function stateText(known: Known, timeText: (ms: number) => string): StateText {
  const { checks, checksCode, atMs, isAway } = known
  if (isAway) {
    const since = atMs === undefined ? '' : ` since ${timeText(atMs)}`
    return {
      level: 'problem',
      title: 'The server does not respond',
      meaning: `Nothing new is shown${since}. The page retries automatically.`,
    }
  }
  if (checks !== undefined) return troubleText(troublesIn(checks))
  if (checksCode === undefined)
    return { level: 'unknown', title: 'Contacting the server…', meaning: '' }
  if (checksCode === 401 || checksCode === 403) {
    return {
      level: 'unknown',
      title: 'State unknown',
      meaning: `This server, or a proxy in front of it, does not show /readyz to you (${checksCode}).`,
    }
  }
  return {
    level: 'problem',
    title: 'The server does not report its state',
    meaning: `/readyz responds with HTTP status ${checksCode}.`,
  }
}

function troubleText(troubles: readonly Trouble[]): StateText {
  const [worst] = troubles
  if (worst === undefined) return { level: 'ok', title: 'Ready', meaning: '' }
  const others = troubles.slice(1).map(({ check }) => check)
  const also = others.length === 0 ? '' : ` Also failing: ${others.join(', ')}.`
  return {
    level: 'problem',
    title: `${worst.title} (check ${worst.check})`,
    meaning: `${worst.meaning}${also}`.trim(),
  }
}

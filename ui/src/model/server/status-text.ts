/** The state of the server in a few words. */
import { type Check, type Trouble, troublesIn } from './health.ts'

export interface Known {
  readonly checks: readonly Check[] | undefined
  /** The HTTP status with which the checks were refused. */
  readonly checksCode: number | undefined
  /** When the server has last responded. */
  readonly atMs: number | undefined
  /** It does not respond now. */
  readonly isAway: boolean
}

export interface StateText {
  /** `unknown` is no problem: a proxy, or a permission, hides the state. */
  readonly level: 'ok' | 'unknown' | 'problem'
  readonly title: string
  readonly meaning: string
}

/** `timeText` prints a time. */
export function stateText(known: Known, timeText: (ms: number) => string): StateText {
  const { checks, checksCode, atMs, isAway } = known
  if (isAway) {
    const since = atMs === undefined ? '' : ` since ${timeText(atMs)}`
    return {
      level: 'problem',
      title: 'The server does not respond',
      meaning: `Nothing new is shown${since}. The page tries again by itself.`,
    }
  }
  if (checks !== undefined) return troubleText(troublesIn(checks))
  if (checksCode === undefined)
    return { level: 'unknown', title: 'Asking the server…', meaning: '' }
  if (checksCode === 401 || checksCode === 403) {
    return {
      level: 'unknown',
      title: 'State not known',
      meaning: `This server, or a proxy in front of it, does not show /readyz to you (${checksCode}).`,
    }
  }
  return {
    level: 'problem',
    title: 'The server does not tell its state',
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

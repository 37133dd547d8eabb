/**
 * The clock matrix: three replicas on one etcd, one of them with a wrong clock (libfaketime), from
 * its start, jumping or drifting, as the sweeper or as a writer; with no replica killed, the
 * sweeper killed, or all of them. Events live for 45 s. None may be deleted more than 10 s early or
 * more than a minute late, in true time. Cases mostly wait, so several run at once: as many as the
 * first argument says, 4 by default. With a second argument, only the cases whose line begins with
 * it, such as `start +1d`. Prints a line for each case; exits with 1 when one of them fails.
 */
import { print, row } from '../../worlds/campaign.ts'
import { type CaseResult, type ClockCase, runCase } from './case.ts'

const TIMES = { ttlMs: 45_000, writeMs: 40_000, earlyMsMax: 10_000 }

const OFFSETS: Readonly<Record<ClockCase['manner'], readonly string[]>> = {
  start: ['+1d', '-1d', '+2h', '-2h'],
  jump: ['+1d', '-1d'],
  // Gains 16 hours within a minute; loses most of it.
  drift: ['+0s x1000', '+0s x0.1'],
}

const cases: ClockCase[] = []
for (const manner of ['start', 'jump', 'drift'] as const) {
  for (const offset of OFFSETS[manner]) {
    for (const role of ['sweeper', 'writer'] as const) {
      for (const kill of ['none', 'sweeper', 'all'] as const) {
        if (!isRepetition(offset, kill)) cases.push({ offset, manner, role, kill })
      }
    }
  }
}
for (const role of ['sweeper', 'writer'] as const) {
  cases.push({ offset: '+1d', manner: 'jump', role, kill: 'none', fakesMonotonic: true })
}

const WIDTHS = [8, 12, 9, 9, 8, 9, 9, 9, 9]
const startedAt = performance.now()
const HEAD = [
  'clock',
  'offset',
  'replica',
  'killed',
  'events',
  'early s',
  'late s',
  'terms',
  'lines',
]
print(row(HEAD, WIDTHS))
let wrong = 0
const begins = process.argv[3] ?? ''
const waiting = cases.filter((each) => nameOf(each).join(' ').startsWith(begins))
const count = waiting.length
await Promise.all(Array.from({ length: Number(process.argv[2] ?? 4) }, work))
const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
print(`${count} cases, ${wrong} wrong, ${minutes} min`)
process.exitCode = wrong === 0 ? 0 : 1

async function work(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const clockCase = next
    show(clockCase, await runCase(clockCase, TIMES).catch((error: unknown) => String(error)))
  }
}

function show(clockCase: ClockCase, result: CaseResult | string): void {
  const name = nameOf(clockCase)
  if (typeof result === 'string') {
    wrong++
    print(`${row(name, WIDTHS)} FAILED: ${result}`)
    return
  }
  const { written, earlyMs, lateMs, wrongTerms, warnings } = result
  const figures = [written, earlyMs / 1000, lateMs / 1000, wrongTerms, warnings]
  if (result.wrong.length > 0) wrong++
  print(`${row([...name, ...figures], WIDTHS)} ${result.wrong.join(', ') || 'ok'}`)
}

/** The star: its monotonic clock jumps as well. */
function nameOf({ manner, offset, role, kill, fakesMonotonic }: ClockCase): readonly string[] {
  return [fakesMonotonic === true ? `${manner} *` : manner, offset, role, kill]
}

/** Two hours and a day differ only when the clock is wrong from the start. */
function isRepetition(offset: string, kill: ClockCase['kill']): boolean {
  return offset.endsWith('2h') && kill === 'sweeper'
}

/** The lines of the report, and the figures of earlier runs beside them. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ratiosOf, type Sample, type Spread, spreadOf } from './turns.ts'
import type { Work } from './work.ts'

/** The name of our server among the samples, and of those that it is compared with. */
export const OURS = 'ours'
export const BARE = 'bare'
export const OTHER = 'other build'
export const KUBERNETES = 'Kubernetes'
export const PUTS = 'Puts of bare etcd'

/** Creates a second beside etcd's own Puts. */
const PUT_RATIO_MIN = 0.3
/** Latency beside the build before. */
const LATENCY_RATIO_MAX = 0.7

type Samples = ReadonlyMap<string, readonly Sample[]>
type Measure = keyof Sample
const TITLES: Readonly<Record<Measure, string>> = {
  micros: 'CPU',
  perSecond: 'rate',
  latencyMs: 'latency',
}

export class Report {
  /** Medians to store, keyed by name. */
  readonly #figures: Record<string, number> = {}
  readonly #before: Readonly<Record<string, number>>
  readonly #historyFile: string

  constructor(historyFile: string) {
    this.#historyFile = historyFile
    this.#before = lastFigures(historyFile)
  }

  add(work: Work, samples: Samples): void {
    const { name, ratioMax } = work
    for (const side of [OURS, BARE, OTHER, KUBERNETES]) {
      const values = valuesOf(samples, side, 'micros')
      if (values.length > 0) this.#figure(`${name}, ${side}, µs of CPU`, spreadOf(values))
    }
    this.#ratio(samples, { name, of: 'micros', to: BARE, most: ratioMax })
    this.#ratio(samples, { name, of: 'micros', to: OTHER })
    this.#ratio(samples, { name, of: 'micros', to: KUBERNETES })
    this.#ratio(samples, { name, of: 'perSecond', to: KUBERNETES })
    this.#ratio(samples, { name, of: 'perSecond', to: PUTS, least: PUT_RATIO_MIN })
    if (work.isSequential === true) this.#addLatencies(name, samples)
    print('')
  }

  #addLatencies(name: string, samples: Samples): void {
    for (const side of [OURS, BARE, OTHER, KUBERNETES]) {
      const values = valuesOf(samples, side, 'latencyMs')
      if (values.length > 0) this.#figure(`${name}, ${side}, ms median latency`, spreadOf(values))
    }
    this.#ratio(samples, { name, of: 'latencyMs', to: OTHER, most: LATENCY_RATIO_MAX })
    this.#ratio(samples, { name, of: 'latencyMs', to: KUBERNETES, most: 1 })
  }

  /** Stores the figures for the next run to compare with. */
  keep(): void {
    const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' })
    const line = { at: new Date(), commit: commit.trim(), figures: this.#figures }
    mkdirSync(dirname(this.#historyFile), { recursive: true })
    appendFileSync(this.#historyFile, `${JSON.stringify(line)}\n`)
  }

  #ratio(
    samples: Samples,
    {
      name,
      of,
      to,
      most,
      least,
    }: {
      readonly name: string
      readonly of: Measure
      readonly to: string
      readonly most?: number | undefined
      readonly least?: number
    },
  ): void {
    const theirs = valuesOf(samples, to, of)
    if (theirs.length === 0) return
    const spread = spreadOf(ratiosOf(valuesOf(samples, OURS, of), theirs))
    const isMet = spread.median <= (most ?? Infinity) && spread.median >= (least ?? 0)
    const wanted =
      most === undefined && least === undefined
        ? ''
        : `, wanted ${most === undefined ? `at least ${least}` : `at most ${most}`}: ${isMet ? 'met' : 'MISSED'}`
    this.#figure(`${name}, ${TITLES[of]} / ${to}`, spread, wanted)
  }

  #figure(name: string, { median, least, most }: Spread, remark = ''): void {
    const before = this.#before[name]
    this.#figures[name] = median
    print(
      `${name.padEnd(52)} ${text(median).padStart(7)} (${text(least)} to ${text(most)})${remark}` +
        `${before === undefined ? '' : `; last run ${text(before)}`}`,
    )
  }
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function valuesOf(samples: Samples, side: string, measure: Measure): readonly number[] {
  const values = samples.get(side)?.map((sample) => sample[measure]) ?? []
  return values.filter((value) => value !== undefined)
}

function text(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2)
}

/** The last of each: a run may have measured a part only. */
function lastFigures(file: string): Readonly<Record<string, number>> {
  if (!existsSync(file)) return {}
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return Object.assign({}, ...lines.map((line) => JSON.parse(line).figures))
}

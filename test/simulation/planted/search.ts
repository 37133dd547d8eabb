/** Searches seeds for a violation in a process of its own, with or without a planted fault. */
import { spawn } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import type { PlantedFault } from './planted-fault.ts'

const simulator = fileURLToPath(new URL('../run.ts', import.meta.url))

/** Where other programs run, a search may take this many times its CPU time. */
const busyFactor = 4

export interface SearchOptions {
  /** The first seed. */
  readonly seed: number
  /** CPU time after which the search ends. */
  readonly seconds: number
}

/** What the search ended with, after how many real seconds. */
export interface SearchResult {
  readonly seconds: number
  readonly violation?: { readonly guarantee: string; readonly seed: number } | undefined
  /** The simulator itself failed. */
  readonly failure?: string | undefined
}

/** Short runs: more seeds, with other settings, and the checks at the end of a run sooner. */
const minutesUsual = 4

/** The same faults and runs as for the planted fault, with the fault or without. */
export function argumentsOf(
  { name, faults, world, operations, minutes = minutesUsual }: PlantedFault,
  { isPlanted }: { readonly isPlanted: boolean },
): readonly string[] {
  return [
    ...(isPlanted ? ['--plant', name] : []),
    ...(faults === undefined ? [] : ['--faults', faults.length === 0 ? 'none' : faults.join(',')]),
    ...(world === undefined ? [] : ['--world', world]),
    ...(operations === undefined ? [] : ['--operations', String(operations)]),
    ...['--minutes', String(minutes)],
  ]
}

/** Never rejects. */
export function search(args: readonly string[], options: SearchOptions): Promise<SearchResult> {
  const { seed, seconds } = options
  const limits = ['--seed', String(seed), '--seconds', String(seconds), '--no-shorten']
  const child = spawn(process.execPath, [simulator, ...args, ...limits], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const beganAt = performance.now()
  let [output, errors] = ['', '']
  let violation: SearchResult['violation']
  // The seconds are CPU time: on a busy machine the search takes longer, and finds as much.
  const timer = setTimeout(() => child.kill('SIGKILL'), seconds * busyFactor * 1000)
  child.stdout.on('data', (piece: Buffer) => {
    output += piece.toString()
    violation ??= violationIn(output)
  })
  child.stderr.on('data', (piece: Buffer) => {
    errors += piece.toString()
  })
  return new Promise((resolve) => {
    child.on('error', (error) => {
      errors += error.message
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      // A planted fault that cannot run proves nothing.
      const isBroken =
        violation?.guarantee === 'no internal errors' && /ReferenceError|SyntaxError/.test(output)
      const hasFailed = isBroken || (violation === undefined && code !== null && code !== 0)
      const failure = hasFailed ? reasonIn(isBroken ? output : errors) : undefined
      if (isBroken) violation = undefined
      resolve({ seconds: (performance.now() - beganAt) / 1000, violation, failure })
    })
  })
}

/** The first line of an error, without where it was thrown. */
function reasonIn(errors: string): string {
  return /^\w*Error: .*$/m.exec(errors)?.[0] ?? 'it ended with an error'
}

function violationIn(output: string): SearchResult['violation'] {
  const [, guarantee, seed] = /^violation of: (.*)\nseed (\d+), at /m.exec(output) ?? []
  if (seed === undefined || guarantee === undefined) return undefined
  return { guarantee, seed: Number(seed) }
}

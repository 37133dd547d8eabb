/** What the programs that run a campaign share: their arguments, their output, their evidence. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Undefined without a text; the process ends when it is not a whole number. */
export function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  process.stderr.write(`not a number: ${text}\n`)
  process.exit(2)
}

/** One line of a table with columns of these widths. */
export function row(cells: readonly (string | number)[], widths: readonly number[]): string {
  return cells
    .map((cell, index) => String(cell).padEnd(widths[index] ?? 0))
    .join(' ')
    .trimEnd()
}

/** Stores the history of a failed run, and prints where it is. */
export function saveEvidence(campaign: string, name: string, evidence: object): void {
  const folder = join(import.meta.dirname, '../../.cache', campaign)
  const file = join(folder, `${name}-${Date.now()}.json`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, JSON.stringify(evidence))
  print(`the history is in ${file}`)
}

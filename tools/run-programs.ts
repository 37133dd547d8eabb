import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import type { Program } from './suites.ts'

/** Runs them one after the other up to the first that fails, and returns its exit code. */
export function runPrograms(programs: readonly Program[]): number {
  for (const program of programs) {
    const { status } = spawnSync(process.execPath, program, {
      cwd: join(import.meta.dirname, '..'),
      stdio: 'inherit',
    })
    if (status !== 0) return status ?? 1
  }
  return 0
}

interface Named {
  readonly name: string
  readonly about: string
}

export function listing(all: readonly Named[]): string {
  const width = Math.max(...all.map(({ name }) => name.length))
  return all.map(({ name, about }) => `${name.padEnd(width)}  ${about}\n`).join('')
}

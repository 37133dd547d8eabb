import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import type { Program } from './suites.ts'

/**
 * Runs them one after the other up to the first that fails, and returns its exit code. `etcd` is the
 * program that tests run with, if not the usual one.
 */
export function runPrograms(programs: readonly Program[], etcd?: string): number {
  // biome-ignore lint/style/noProcessEnv: a program gets what a user's shell would give it.
  const inherited = process.env
  for (const program of programs) {
    const { status } = spawnSync(process.execPath, program, {
      cwd: join(import.meta.dirname, '..'),
      stdio: 'inherit',
      env: etcd === undefined ? inherited : { ...inherited, ETCD: etcd },
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

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Release } from '../contract.ts'
import type { Recording } from './play.ts'

const folder = join(import.meta.dirname, '../recorded')

/** What a real etcd of this release replied; a release without a file replied as 3.5 did. */
export function recordedBy(release: Release, scenario: string): Recording {
  const own = recordedFile(release, scenario)
  const file = existsSync(own) ? own : recordedFile('3.5', scenario)
  return JSON.parse(readFileSync(file, 'utf8'))
}

export function recordedFile(release: Release, scenario: string): string {
  return join(folder, `${scenario}${release === '3.5' ? '' : `-${release}`}.json`)
}

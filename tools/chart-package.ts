/**
 * Packs the chart into `release/tidings-<version>.tgz`: `npm run chart`. A commit always gives the same
 * bytes: helm keeps the times of files, so all of them get the time of the commit first. It needs helm
 * (`npm run tools -- helm`).
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeSums } from './release/archive.ts'
import { commitSeconds, releaseFolder, root } from './release/project.ts'

/** Writes the archive into a folder. */
export function packChart(destination: string): void {
  const work = mkdtempSync(join(tmpdir(), 'tidings-chart-'))
  try {
    const chart = join(work, 'tidings')
    cpSync(join(root, 'charts/tidings'), chart, { recursive: true })
    const seconds = commitSeconds()
    for (const path of readdirSync(chart, { recursive: true, encoding: 'utf8' })) {
      utimesSync(join(chart, path), seconds, seconds)
    }
    const args = ['package', chart, '--destination', destination]
    execFileSync(join(root, '.cache/helm/helm'), args, { stdio: ['ignore', 'ignore', 'inherit'] })
  } finally {
    rmSync(work, { recursive: true })
  }
}

if (import.meta.main) {
  mkdirSync(releaseFolder, { recursive: true })
  packChart(releaseFolder)
  writeSums(releaseFolder)
}

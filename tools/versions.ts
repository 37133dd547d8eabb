/**
 * Runs suites with each release of the programs that this server works with, and records the results
 * in test/versions.json, from which `npm run docs` makes docs/reference/versions.md:
 *
 *   npm run versions                    everything that is installed
 *   npm run versions -- etcd kubectl    only these
 *   npm run versions -- kubectl@1.36    only this release
 *
 * A release that is not installed keeps its recorded result.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { PARTS, type Part, type Release, type Run } from './versions/parts.ts'
import { RESULTS_FILE, type Result, results } from './versions/results.ts'

const root = join(import.meta.dirname, '..')
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !PARTS.some(({ id }) => id === name.split('@', 1)[0]))
if (unknown.length > 0) {
  process.stderr.write(
    `unknown: ${unknown.join(', ')}; known: ${PARTS.map(({ id }) => id).join(', ')}\n`,
  )
  process.exit(1)
}
for (const part of PARTS) {
  for (const release of part.installed()) {
    const names = [part.id, `${part.id}@${release.version}`]
    if (wanted.length > 0 && !names.some((name) => wanted.includes(name))) continue
    for (const run of part.runs) record(await runWith(part, release, run))
  }
}

async function runWith(part: Part, release: Release, run: Run): Promise<Result> {
  const args = ['tools/test.ts', run.suite, ...(run.args?.(release) ?? [])]
  process.stdout.write(`\n== ${part.id} ${release.version}: ${args.slice(1).join(' ')}\n`)
  const child = spawn(process.execPath, args, {
    cwd: root,
    // biome-ignore lint/style/noProcessEnv: suites are told by variables which programs to run.
    env: { ...process.env, ...part.variables?.(release) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    lines.push(text)
  })
  const [code] = await once(child, 'close')
  const count = run.count(lines.join(''))
  // A suite in which nothing ran proves nothing, whatever its exit code.
  const hasPassed = code === 0 && count > 0
  const on = new Date().toISOString().slice(0, 10)
  return { part: part.id, version: release.version, suite: run.suite, count, hasPassed, on }
}

function record(result: Result): void {
  const isOther = ({ part, version, suite }: Result): boolean =>
    part !== result.part || version !== result.version || suite !== result.suite
  const all = [...results().filter(isOther), result].toSorted((one, other) =>
    key(one) < key(other) ? -1 : 1,
  )
  writeFileSync(RESULTS_FILE, `${JSON.stringify(all, undefined, 2)}\n`)
  const outcome = result.hasPassed ? 'passed' : 'FAILED'
  process.stdout.write(
    `${outcome}  ${result.part} ${result.version}, ${result.suite}: ${result.count}\n`,
  )
  if (!result.hasPassed) process.exitCode = 1
}

function key({ part, version, suite }: Result): string {
  return [part, version, suite].join(' ')
}

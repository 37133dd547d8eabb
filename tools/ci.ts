/**
 * Runs types, lint, the build and every suite of CI (tools/suites.ts), repeats some suites with each
 * other etcd that is installed, stops after the first step with a failure, and prints a summary.
 * Nothing is retried: a test that fails now and then is fixed, or moves to the nightly run with its
 * cause written down. All suites get the same seed, and the summary names it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { otherEtcds, testedEtcds } from './other-etcds.ts'
import { NEEDS, programsOf, SUITES } from './suites.ts'

type Command = readonly string[]
type Write = (text: string) => void

interface Stage {
  readonly name: string
  readonly commands: readonly Command[]
  /** The variable `ETCD`; the etcd of this run if undefined. */
  readonly etcd?: string
}

interface Counts {
  pass: number
  fail: number
  skipped: number
}

interface Result {
  readonly code: number | null
  readonly counts: Counts
  /** The test runner's report of failures; without that, the last lines. */
  readonly report: string
}

/** No stage takes this long unless it hangs. */
const STAGE_MS_MAX = 12 * 60 * 1000
const REPORT_CHARS_MAX = 8_000
const REPORT_LINES = 60
const SLOWEST_SHOWN = 10

// biome-ignore lint/style/noProcessEnv: the tests of all suites read the seed from it.
const inherited = process.env
/** The seed of fuzz, chaos and generated targets. */
const SEED = inherited['TIDINGS_TEST_SEED'] ?? String(Math.floor(Math.random() * 2 ** 31))
/** Hundreds of test files import the same modules: each is compiled once. */
const COMPILE_CACHE = resolve('.cache/compile')
const env = { ...inherited, TIDINGS_TEST_SEED: SEED, NODE_COMPILE_CACHE: COMPILE_CACHE }

/** One file of times for each stage, written by tools/file-times.ts. */
const timesFolder = mkdtempSync(join(tmpdir(), 'tidings-ci-'))
const totals: Counts = { pass: 0, fail: 0, skipped: 0 }
const times: string[] = []
/** The test runner's reports of failures, for the end of the output. */
const failures: string[] = []
let hasPassed = true
/** Programs, each with a process group of its own. */
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of running) killTree(child)
    process.exit(1)
  })
}

print(`seed ${SEED}; TIDINGS_TEST_SEED=${SEED} repeats it`)
for (const lanes of [...steps(), otherEtcdLanes()]) {
  await Promise.all(lanes.map(runLane))
  if (!hasPassed) break
}
for (const text of failures) print(text)
print(`\n${times.join(', ')}`)
print(testedEtcds())
print(`\nthe slowest files:\n${slowestFiles().join('\n')}\n`)
print(hasPassed ? 'all stages passed' : `a stage failed, with TIDINGS_TEST_SEED=${SEED}`)
print(`${totals.pass} passed, ${totals.fail} failed, ${totals.skipped} skipped`)
rmSync(timesFolder, { recursive: true })
process.exitCode = hasPassed ? 0 : 1

/** Steps run one after the other, the lanes of a step at the same time. */
function steps(): readonly (readonly (readonly Stage[])[])[] {
  const found: Stage[][][] = [
    [
      [
        { name: 'types', commands: [['npm', 'run', '--silent', 'types']] },
        { name: 'lint', commands: [['npm', 'run', '--silent', 'lint']] },
        { name: 'build', commands: NEEDS.build.map((program) => ['node', ...program]) },
      ],
    ],
  ]
  const made = new Set(NEEDS.build)
  for (const suite of SUITES) {
    if (suite.ci === undefined) continue
    const { step, lane } = suite.ci
    const needed = suite.needs === undefined ? [] : NEEDS[suite.needs]
    const missing = needed.filter((program) => !made.has(program))
    for (const program of missing) made.add(program)
    const programs = [...missing, ...programsOf(suite, reporters(suite.name))]
    const lanes = found[step] ?? []
    const stages = lanes[lane] ?? []
    stages.push({ name: suite.name, commands: programs.map((program) => ['node', ...program]) })
    lanes[lane] = stages
    found[step] = lanes
  }
  return found
}

/** One lane for each other etcd: everything is built by now. */
function otherEtcdLanes(): readonly (readonly Stage[])[] {
  return otherEtcds.map(({ version, program: etcd }) =>
    SUITES.flatMap((suite) => {
      const args = suite.ci?.everyEtcd
      if (args === undefined) return []
      const name = `${suite.name}@${version}`
      const programs = programsOf(suite, [...args, ...reporters(name)])
      return [{ name, commands: programs.map((program) => ['node', ...program]), etcd }]
    }),
  )
}

function reporters(name: string): readonly string[] {
  return [
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(import.meta.dirname, 'file-times.ts')}`,
    `--test-reporter-destination=${join(timesFolder, name)}`,
  ]
}

/** The output of the first lane is printed as it comes, that of others at the end of each stage. */
async function runLane(lane: readonly Stage[], index: number): Promise<void> {
  for (const stage of lane) {
    const output: string[] = []
    const write: Write = index === 0 ? toOutput : (text) => output.push(text)
    const isGood = await runStage(stage, write)
    toOutput(output.join(''))
    if (!isGood) hasPassed = false
    if (!hasPassed) return
  }
}

async function runStage({ name, commands, etcd }: Stage, write: Write): Promise<boolean> {
  write(`\n== ${name}\n`)
  const startedAt = performance.now()
  try {
    for (const command of commands) {
      const { code, counts, report } = await run(command, write, etcd)
      totals.pass += counts.pass
      totals.fail += counts.fail
      totals.skipped += counts.skipped
      if (code === 0) continue
      failures.push(`\n== failures of ${name}\n${report.slice(0, REPORT_CHARS_MAX)}`)
      return false
    }
    return true
  } finally {
    times.push(`${name} ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  }
}

async function run(
  [program = '', ...args]: Command,
  write: Write,
  etcd: string | undefined,
): Promise<Result> {
  const counts: Counts = { pass: 0, fail: 0, skipped: 0 }
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: etcd === undefined ? env : { ...env, ETCD: etcd },
    detached: true,
  })
  running.add(child)
  child.stdout.setEncoding('utf8')
  let rest = ''
  const report: string[] = []
  child.stdout.on('data', (chunk: string) => {
    write(chunk)
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      count(line, counts)
      if (line === '✖ failing tests:') report.length = 0
      report.push(line)
      if (report[0] !== '✖ failing tests:' && report.length > REPORT_LINES) report.shift()
    }
  })
  const late = setTimeout(() => killTree(child), STAGE_MS_MAX)
  const [code] = await once(child, 'close')
  clearTimeout(late)
  running.delete(child)
  return { code, counts, report: report.join('\n') }
}

/** Kills a program with all that it started: one that is left keeps the output open for ever. */
function killTree({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

/** Reads the closing lines of Node's test runner, such as `ℹ pass 12`. */
function count(line: string, counts: Counts): void {
  const [, what, number] = /^(?:ℹ|#) (pass|fail|cancelled|skipped) (\d+)$/.exec(line) ?? []
  if (what === 'pass' || what === 'skipped') counts[what] += Number(number)
  // A test that ran out of time is cancelled.
  if (what === 'fail' || what === 'cancelled') counts.fail += Number(number)
}

function slowestFiles(): readonly string[] {
  return readdirSync(timesFolder)
    .flatMap((name) => readFileSync(join(timesFolder, name), 'utf8').trim().split('\n'))
    .map((line) => line.split(' '))
    .toSorted(([one], [other]) => Number(other) - Number(one))
    .slice(0, SLOWEST_SHOWN)
    .map(([ms, file]) => `${(Number(ms) / 1000).toFixed(1).padStart(6)} s  ${file}`)
}

function toOutput(text: string): void {
  process.stdout.write(text)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

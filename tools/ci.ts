/**
 * Runs every stage, stops after the first step with a failure, and prints a summary of the tests.
 *
 * Failed test files of stages with real processes and real time run once more, since these machines
 * are shared. They use the same seed, so a failure of fuzz or chaos must pass with the very seed
 * that it failed with. The first failure is printed in full, and every retry is named in the
 * summary.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import process from 'node:process'

interface Stage {
  readonly script: string
  /** It depends on time, and may be tried again. */
  readonly isTimed: boolean
}

/** Stages that run one after the other. */
type Lane = readonly Stage[]
type Write = (text: string) => void

interface Result {
  readonly hasPassed: boolean
  readonly counts: Counts
  /** Test files with a failure; empty when one of the failures is not in such a file. */
  readonly failed: readonly string[]
  /** What the test runner says of failures after all tests; without that, the last lines. */
  readonly report: string
}

interface Counts {
  pass: number
  fail: number
  skipped: number
}

const untimed = (script: string): Stage => ({ script, isTimed: false })
const timed = (script: string): Stage => ({ script, isTimed: true })

/**
 * Steps run one after the other, the lanes of a step at the same time: there are two cores. What
 * measures time, memory or shares has a step of its own.
 */
const STEPS: readonly (readonly Lane[])[] = [
  [
    [
      untimed('types'),
      untimed('lint'),
      untimed('unit'),
      untimed('test:contract'),
      untimed('test:conformance'),
    ],
    // Each keeps one core busy. The simulation is deterministic; the model is not retried, since
    // with another timing the same seed may hide a wrong answer.
    [untimed('test:simulation'), timed('test:fuzz:short'), untimed('test:model:short')],
  ],
  // Each of these stages keeps both cores busy, or measures.
  [[timed('test:ui')]],
  [[timed('test:measured')]],
  [[timed('test:integration')]],
  [[timed('test:e2e')]],
  // These wait for timers and faults, so three run at a time.
  [
    // test:docs follows the README and the tutorials with the archive that test:release makes.
    [timed('test:release'), timed('test:docs')],
    [timed('test:chaos:short'), untimed('test:upgrade:short')],
    // The mirror is not retried: another timing may hide an event that was lost.
    [untimed('test:mirror:short'), timed('test:chart')],
  ],
]
/** Nothing takes this long unless it hangs. */
const STAGE_MS_MAX = 12 * 60 * 1000
const REPORT_CHARS_MAX = 8_000
const REPORT_LINES = 60
/** The timeout of the slowest npm script. */
const ONCE_MORE = ['--test', '--test-timeout=240000', '--test-concurrency=1']

// biome-ignore lint/style/noProcessEnv: the tests of all stages read the seed from it.
const inherited = process.env
/** The seed of fuzz, chaos and generated targets in this run and in its retries. */
const SEED = inherited['TIDINGS_TEST_SEED'] ?? String(Math.floor(Math.random() * 2 ** 31))
/** Hundreds of test files import the same modules: each is compiled once. */
const COMPILE_CACHE = resolve('.cache/compile')
const env = { ...inherited, TIDINGS_TEST_SEED: SEED, NODE_COMPILE_CACHE: COMPILE_CACHE }

const totals: Counts = { pass: 0, fail: 0, skipped: 0 }
const times: string[] = []
const repeated: string[] = []
/** What the test runner said of the failures that count, for the end of the output. */
const failures: string[] = []
let hasPassed = true
/** Stages, each with a process group of its own. */
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    for (const child of running) killTree(child)
    process.exit(1)
  })
}

print(`seed ${SEED}; TIDINGS_TEST_SEED=${SEED} repeats it`)
for (const lanes of STEPS) {
  await Promise.all(lanes.map(runLane))
  if (!hasPassed) break
}
for (const text of failures) print(text)
print(`\n${times.join(', ')}`)
if (repeated.length === 0) print('no retries')
for (const what of repeated) print(`retried with seed ${SEED}, see above: ${what}`)
print(hasPassed ? 'all stages passed' : `a stage failed, with TIDINGS_TEST_SEED=${SEED}`)
print(`${totals.pass} passed, ${totals.fail} failed, ${totals.skipped} skipped`)
process.exitCode = hasPassed ? 0 : 1

/** The output of the first lane is printed as it comes, that of others at the end of each stage. */
async function runLane(lane: Lane, index: number): Promise<void> {
  for (const stage of lane) {
    const output: string[] = []
    const write: Write = index === 0 ? toOutput : (text) => output.push(text)
    const result = await runStage(stage, write)
    toOutput(output.join(''))
    totals.pass += result.counts.pass
    totals.fail += result.counts.fail
    totals.skipped += result.counts.skipped
    if (!result.hasPassed) {
      hasPassed = false
      failures.push(`\n== failures of ${stage.script}\n${result.report.slice(0, REPORT_CHARS_MAX)}`)
    }
    if (!hasPassed) return
  }
}

async function runStage({ script, isTimed }: Stage, write: Write): Promise<Result> {
  const first = await run(script, 'npm', ['run', '--silent', script], write)
  if (first.hasPassed || !isTimed || first.failed.length === 0) return first
  repeated.push(`${script}: ${first.failed.join(', ')}`)
  const args = [...ONCE_MORE, ...first.failed]
  return together(first, await run(`${script}, again`, 'node', args, write))
}

/** A file that failed first and passed the retry has passed. */
function together({ counts: { pass, fail, skipped } }: Result, second: Result): Result {
  const left = second.counts.fail
  return { ...second, counts: { pass: pass + fail - left, fail: left, skipped } }
}

async function run(
  name: string,
  program: string,
  args: readonly string[],
  write: Write,
): Promise<Result> {
  write(`\n== ${name}\n`)
  const startedAt = performance.now()
  const counts: Counts = { pass: 0, fail: 0, skipped: 0 }
  const failed = new Set<string>()
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], env, detached: true })
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
      // As in `test at test/ci/e2e/startup.test.ts:12:3`, after all tests.
      const [, file] = /^test at (\S+):\d+:\d+$/.exec(line) ?? []
      if (file !== undefined) failed.add(file)
    }
  })
  const late = setTimeout(() => killTree(child), STAGE_MS_MAX)
  const [code] = await once(child, 'close')
  clearTimeout(late)
  running.delete(child)
  times.push(`${name} ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  // A failure in a shared suite cannot be repeated alone: a retry without it would hide it.
  const canRepeat = [...failed].every((file) => file.endsWith('.test.ts'))
  return {
    hasPassed: code === 0,
    counts,
    failed: canRepeat ? [...failed] : [],
    report: report.join('\n'),
  }
}

/**
 * Kills a stage with all processes that npm started for it: one that is left keeps the output open,
 * and the stage would never end.
 */
function killTree({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

/** The closing lines of Node's test runner, such as `ℹ pass 12`. */
function count(line: string, counts: Counts): void {
  const [, what, number] = /^(?:ℹ|#) (pass|fail|skipped) (\d+)$/.exec(line) ?? []
  if (what === 'pass' || what === 'fail' || what === 'skipped') counts[what] += Number(number)
}

function toOutput(text: string): void {
  process.stdout.write(text)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

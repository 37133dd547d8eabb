/**
 * Runs every stage in order, stops at the first that fails, and prints a summary of the tests.
 *
 * Failed test files of stages with real processes and real time run once more, since these machines
 * are shared. They use the same seed, so a failure of fuzz or chaos must pass with the very seed
 * that it failed with. The first failure is printed in full, and every retry is named in the
 * summary.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'

interface Stage {
  readonly script: string
  readonly isTimed: boolean
}

interface Result {
  readonly hasPassed: boolean
  readonly counts: Counts
  /** Test files with a failure; empty when one of the failures is not in such a file. */
  readonly failed: readonly string[]
}

interface Counts {
  pass: number
  fail: number
  skipped: number
}

const STAGES: readonly Stage[] = [
  { script: 'types', isTimed: false },
  { script: 'lint', isTimed: false },
  { script: 'unit', isTimed: false },
  { script: 'test:contract', isTimed: false },
  { script: 'test:conformance', isTimed: false },
  { script: 'test:chart', isTimed: true },
  // Not retried: with another timing the same seed may hide a wrong answer.
  { script: 'test:model:short', isTimed: false },
  { script: 'test:fuzz:short', isTimed: true },
  // Alone: it measures CPU time, memory and shares. The next two run two files at a time.
  { script: 'test:measured', isTimed: true },
  { script: 'test:integration', isTimed: true },
  { script: 'test:e2e', isTimed: true },
  { script: 'test:releases', isTimed: true },
  // Follows the README and the tutorials with the release archive.
  { script: 'test:docs', isTimed: true },
  { script: 'test:release', isTimed: true },
  { script: 'test:chaos:short', isTimed: true },
  // Not retried: with another timing the same seed may hide an event that was lost.
  { script: 'test:mirror:short', isTimed: false },
]
/**
 * Runs beside the first stages: it is deterministic, keeps one core busy, and needs nothing that
 * other stages build. Its output is printed at its end.
 */
const BESIDE = 'test:simulation'
/** The stage before which that must have passed. */
const JOINED_BEFORE = 'test:fuzz:short'
/** Nothing takes this long unless it hangs. */
const STAGE_MS_MAX = 20 * 60 * 1000
/** The timeout of the slowest npm script. */
const ONCE_MORE = ['--test', '--test-timeout=240000', '--test-concurrency=1']

// biome-ignore lint/style/noProcessEnv: the tests of all stages read the seed from it.
const inherited = process.env
/** The seed of fuzz, chaos and generated targets in this run and in its retries. */
const SEED = inherited['TIDINGS_TEST_SEED'] ?? String(Math.floor(Math.random() * 2 ** 31))
const env = { ...inherited, TIDINGS_TEST_SEED: SEED }

const totals: Counts = { pass: 0, fail: 0, skipped: 0 }
const times: string[] = []
const repeated: string[] = []
let hasPassed = true

print(`seed ${SEED}; TIDINGS_TEST_SEED=${SEED} repeats it`)
const beside = runBeside()
for (const stage of STAGES) {
  if (stage.script === JOINED_BEFORE && !add(await beside)) break
  let result = await run(stage.script, 'npm', ['run', '--silent', stage.script])
  if (!result.hasPassed && stage.isTimed && result.failed.length > 0) {
    repeated.push(`${stage.script}: ${result.failed.join(', ')}`)
    result = together(
      result,
      await run(`${stage.script}, again`, 'node', [...ONCE_MORE, ...result.failed]),
    )
  }
  if (!add(result)) break
}
await beside
print(`\n${times.join(', ')}`)
if (repeated.length === 0) print('no retries')
for (const what of repeated) print(`retried with seed ${SEED}, see above: ${what}`)
print(hasPassed ? 'all stages passed' : 'a stage failed')
print(`${totals.pass} passed, ${totals.fail} failed, ${totals.skipped} skipped`)
process.exitCode = hasPassed ? 0 : 1

/** Adds to the totals; false when the stage failed. */
function add({ counts, hasPassed: isPassed }: Result): boolean {
  totals.pass += counts.pass
  totals.fail += counts.fail
  totals.skipped += counts.skipped
  hasPassed = isPassed
  return isPassed
}

async function runBeside(): Promise<Result> {
  const output: string[] = []
  const args = ['run', '--silent', BESIDE]
  const result = await run(BESIDE, 'npm', args, (text) => output.push(text))
  process.stdout.write(output.join(''))
  return result
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
  write: (text: string) => void = (text) => process.stdout.write(text),
): Promise<Result> {
  write(`\n== ${name}\n`)
  const startedAt = performance.now()
  const counts: Counts = { pass: 0, fail: 0, skipped: 0 }
  const failed = new Set<string>()
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  child.stdout.setEncoding('utf8')
  let rest = ''
  child.stdout.on('data', (chunk: string) => {
    write(chunk)
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      count(line, counts)
      // As in `test at test/ci/e2e/startup.test.ts:12:3`, after all tests.
      const [, file] = /^test at (\S+):\d+:\d+$/.exec(line) ?? []
      if (file !== undefined) failed.add(file)
    }
  })
  const late = setTimeout(() => child.kill('SIGKILL'), STAGE_MS_MAX)
  const [code] = await once(child, 'close')
  clearTimeout(late)
  times.push(`${name} ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  // A failure in a shared suite cannot be repeated alone: a retry without it would hide it.
  const canRepeat = [...failed].every((file) => file.endsWith('.test.ts'))
  return { hasPassed: code === 0, counts, failed: canRepeat ? [...failed] : [] }
}

/** The closing lines of Node's test runner, such as `ℹ pass 12`. */
function count(line: string, counts: Counts): void {
  const [, what, number] = /^(?:ℹ|#) (pass|fail|skipped) (\d+)$/.exec(line) ?? []
  if (what === 'pass' || what === 'fail' || what === 'skipped') counts[what] += Number(number)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

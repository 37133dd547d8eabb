/**
 * Runs every stage in order, stops at the first that fails, and sums up what the tests said.
 *
 * Stages that hold real processes to real time are given a second chance, since machines that run
 * this are shared: a failure that happens twice is ours. The first one is printed in full and named
 * again at the end, so that it is not overlooked.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

interface Stage {
  readonly script: string
  readonly isTimed: boolean
}

interface Result {
  readonly hasPassed: boolean
  readonly counts: Counts
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
  { script: 'test:fuzz:short', isTimed: true },
  { script: 'test:integration', isTimed: true },
  { script: 'test:e2e', isTimed: true },
  { script: 'test:chaos:short', isTimed: true },
]
/** Nothing takes this long unless it hangs. */
const STAGE_MS_MAX = 10 * 60 * 1000

const totals: Counts = { pass: 0, fail: 0, skipped: 0 }
const times: string[] = []
const repeated: string[] = []
let hasPassed = true

for (const stage of STAGES) {
  let result = await run(stage.script)
  if (!result.hasPassed && stage.isTimed) {
    repeated.push(stage.script)
    result = await run(stage.script)
  }
  totals.pass += result.counts.pass
  totals.fail += result.counts.fail
  totals.skipped += result.counts.skipped
  hasPassed = result.hasPassed
  if (!hasPassed) break
}
print(`\n${times.join(', ')}`)
for (const script of repeated) print(`${script} failed at first: see above`)
print(hasPassed ? 'all stages passed' : 'a stage failed')
print(`${totals.pass} passed, ${totals.fail} failed, ${totals.skipped} skipped`)
process.exitCode = hasPassed ? 0 : 1

async function run(script: string): Promise<Result> {
  print(`\n== ${script}`)
  const startedAt = performance.now()
  const counts: Counts = { pass: 0, fail: 0, skipped: 0 }
  const child = spawn('npm', ['run', '--silent', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.setEncoding('utf8')
  let rest = ''
  child.stdout.on('data', (chunk: string) => {
    process.stdout.write(chunk)
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) count(line, counts)
  })
  const late = setTimeout(() => child.kill('SIGKILL'), STAGE_MS_MAX)
  const [code] = await once(child, 'close')
  clearTimeout(late)
  times.push(`${script} ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  return { hasPassed: code === 0, counts }
}

/** The closing lines of Node's test runner, such as `ℹ pass 12`. */
function count(line: string, counts: Counts): void {
  const [, what, number] = /^(?:ℹ|#) (pass|fail|skipped) (\d+)$/.exec(line) ?? []
  if (what === 'pass' || what === 'fail' || what === 'skipped') counts[what] += Number(number)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

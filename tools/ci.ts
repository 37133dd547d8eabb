/** Runs every stage in order, stops at the first that fails, and sums up what the tests said. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const STAGES = [
  'types',
  'lint',
  'unit',
  'test:contract',
  'test:integration',
  'test:e2e',
  'test:chaos:short',
] as const
/** Nothing takes this long unless it hangs. */
const STAGE_MS_MAX = 10 * 60 * 1000
const totals = { pass: 0, fail: 0, skipped: 0 }
const times: string[] = []

for (const stage of STAGES) {
  process.stdout.write(`\n== ${stage}\n`)
  const startedAt = performance.now()
  const code = await run(stage)
  times.push(`${stage} ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  if (code !== 0) {
    process.stdout.write(`\n${stage} failed\n`)
    break
  }
  if (stage === STAGES.at(-1)) process.stdout.write('\nall stages passed\n')
}
process.stdout.write(`${times.join(', ')}\n`)
process.stdout.write(`${totals.pass} passed, ${totals.fail} failed, ${totals.skipped} skipped\n`)
process.exitCode = times.length === STAGES.length && totals.fail === 0 ? process.exitCode : 1

async function run(script: string): Promise<number | null> {
  const child = spawn('npm', ['run', '--silent', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout.setEncoding('utf8')
  let rest = ''
  child.stdout.on('data', (chunk: string) => {
    process.stdout.write(chunk)
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) count(line)
  })
  const late = setTimeout(() => child.kill('SIGKILL'), STAGE_MS_MAX)
  const [code] = await once(child, 'close')
  clearTimeout(late)
  if (code !== 0) process.exitCode = 1
  return code
}

/** The closing lines of Node's test runner, such as `ℹ pass 12`. */
function count(line: string): void {
  const [, what, number] = /^(?:ℹ|#) (pass|fail|skipped) (\d+)$/.exec(line) ?? []
  if (what === 'pass' || what === 'fail' || what === 'skipped') totals[what] += Number(number)
}

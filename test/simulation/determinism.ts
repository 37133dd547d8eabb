/**
 * Shows that a seed always gives the same run: repeats it in this process, whose code gets faster
 * and whose heap fills up meanwhile, and in fresh processes, also of other versions of Node.
 *
 * `npm test -- simulation:determinism [--runs N] [--node PATH]...`
 */
import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Scenario } from './simulate.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '13' },
    node: { type: 'string', multiple: true, default: [] },
    /** One run, for the fresh processes. */
    once: { type: 'boolean', default: false },
  },
})

const seed = Number(values.seed)
/** Long enough for a storm, so that every kind of entry is part of the run. */
const durationMs = 20_000
const operationsPerSecond = 20
const otherEvery = 10
const faultKindsMin = 5

const { intercept } = await import('./kernel/interception.ts')
intercept()
const { inTask } = await import('./kernel/current.ts')
const { runScenario, scenarioOf } = await import('./simulate.ts')

const lifetime = 20_000

/** A short lifetime and no compaction, since the calm at the end lasts several of either. */
function scenario(of: number): Scenario {
  const { setting, ...rest } = scenarioOf({ seed: of, durationMs, operationsPerSecond })
  const limits = { ...setting.limits, eventTtlMs: lifetime, compactionIntervalMs: 0 }
  const policies = setting.policies.map(({ at, policy }) => {
    const rules = policy.rules.map((rule) => ({ ...rule, lifetime }))
    return { at, policy: { ...policy, rules, lifetime } }
  })
  return { ...rest, setting: { ...setting, limits, policies } }
}

async function hashOfRun(): Promise<string> {
  const { hash, violation, faults } = await inTask(() => runScenario(scenario(seed)))
  if (faults.size < faultKindsMin) throw new Error(`only ${faults.size} kinds of faults in the run`)
  return violation === undefined ? hash : `${hash}, violated: ${violation.what}`
}

function hashIn(node: string): string {
  const script = fileURLToPath(import.meta.url)
  const { stdout, stderr } = spawnSync(node, [script, '--once', '--seed', String(seed)], {
    encoding: 'utf8',
  })
  return stdout === '' ? stderr : stdout
}

const first = await hashOfRun()
if (values.once) process.stdout.write(first)
else {
  const runs = Number(values.runs)
  let same = 1
  let isSame = true
  for (let run = 1; run < runs; run++) {
    // Other runs in between must not leave anything behind.
    if (run % otherEvery === 0) await inTask(() => runScenario(scenario(run)))
    if ((await hashOfRun()) === first) same++
  }
  print(`seed ${seed}: ${first}: ${same} of ${runs} runs in one process have this hash`)
  for (const node of [process.execPath, ...values.node]) {
    const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()
    const found = hashIn(node)
    isSame &&= found === first
    print(`a fresh process of Node ${version}: ${found === first ? 'the same' : found}`)
  }
  process.exitCode = isSame && same === runs ? 0 : 1
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

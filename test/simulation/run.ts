/**
 * Simulates the engine: `npm run simulate -- --seed 7`. Without a seed it begins with a random one
 * and goes on with the next seeds until the simulated hours or the seconds of CPU time are over.
 */
import process from 'node:process'
import { parseArgs } from 'node:util'
import { intercept, plant } from './kernel/interception.ts'
import { plantedFaults } from './planted/faults.ts'
import { type WorldKind, worldKinds } from './world-kinds.ts'

const help = `npm run simulate -- [options]
  --seed N        the first seed; each seed is one run (default: random)
  --hours H       simulated hours in all (default: one run)
  --seconds S     ends after this many seconds of CPU time, with the run that is under way
  --minutes M     simulated minutes with clients in each run (default 20); some minutes without
                  faults and writes follow, at whose end everything must have recovered
  --replicas R    (default 3)
  --operations O  operations of clients per simulated second (default 50)
  --world W       events: clients of the event API (default); mirror: a mirrored cluster, where
                  the operations are writes at its origin; history: an archive of events
  --faults f,g    only these faults; "none" for none; a wrong name lists all
  --plant NAME    plants a bug in the production code; a wrong name lists all
  --trace         prints every message and every log line
  --coverage      prints how much of the production code has run
  --no-shorten    does not shorten a run that fails
  --keep-going    goes on after a violation`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    hours: { type: 'string' },
    seconds: { type: 'string' },
    minutes: { type: 'string' },
    replicas: { type: 'string' },
    operations: { type: 'string' },
    faults: { type: 'string' },
    world: { type: 'string' },
    plant: { type: 'string' },
    trace: { type: 'boolean' },
    coverage: { type: 'boolean' },
    'no-shorten': { type: 'boolean' },
    'keep-going': { type: 'boolean' },
    help: { type: 'boolean' },
  },
})

if (values.help === true) {
  process.stdout.write(`${help}\n`)
} else {
  if (values.plant !== undefined) {
    const planted = plantedFaults.find(({ name }) => name === values.plant)
    if (planted === undefined) {
      fail(`--plant is one of: ${plantedFaults.map(({ name }) => name).join(', ')}`)
    }
    for (const patch of planted.patches) plant(patch)
  }
  intercept()
  const { simulateAll } = await import('./campaign.ts')
  const { allFaultNames } = await import('./faults/plan.ts')
  const number = (text: string | undefined) => {
    if (text === undefined) return undefined
    const value = Number(text)
    if (!(value >= 0)) fail(`not a number: ${text}`)
    return value
  }
  const hasPassed = await simulateAll({
    seed: number(values.seed) ?? Math.floor(Math.random() * 2 ** 31),
    hours: number(values.hours),
    seconds: number(values.seconds),
    runMs: (number(values.minutes) ?? 20) * 60_000,
    replicas: number(values.replicas),
    operationsPerSecond: number(values.operations),
    faults: faultsOf(values.faults, allFaultNames),
    world: worldOf(values.world),
    isTraced: values.trace === true,
    isCovered: values.coverage === true,
    isShortened: values['no-shorten'] !== true,
    repeatArguments: (
      ['world', 'minutes', 'replicas', 'operations', 'faults', 'plant'] as const
    ).flatMap((name) => (values[name] === undefined ? [] : [`--${name}`, values[name]])),
    isKeptGoing: values['keep-going'] === true,
  })
  process.exitCode = hasPassed ? 0 : 1
}

function faultsOf(
  text: string | undefined,
  known: readonly string[],
): readonly string[] | undefined {
  if (text === undefined) return undefined
  const names = text === 'none' ? [] : text.split(',')
  if (names.some((name) => !known.includes(name))) fail(`--faults are some of: ${known.join(', ')}`)
  return names
}

function worldOf(text = 'events'): WorldKind {
  const world = worldKinds.find((kind) => kind === text)
  return world ?? fail(`--world is one of: ${worldKinds.join(', ')}`)
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

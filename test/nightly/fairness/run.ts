/**
 * Shares slots, CPU time and space for events among random users, a million steps in all:
 *   npm test -- fairness [steps [seed]]
 * Exits with 1 when a user within its fair share is refused, and prints the seed of that world.
 */
import { Random } from '../../support/random.ts'
import { playWorld, type Tally } from './model.ts'

const STEPS_PER_WORLD = 10_000

const [stepsText, seedText] = process.argv.slice(2)
const steps = Number(stepsText ?? 1_000_000)
const seed = Number(seedText ?? Date.now() % 2 ** 31)
const total: Tally = { steps: 0, modestGranted: 0, greedyGranted: 0, greedyRefused: 0 }
for (let world = seed; total.steps < steps; world++) {
  try {
    const tally = await playWorld(new Random(world), Math.min(STEPS_PER_WORLD, steps))
    for (const name of Object.keys(total) as (keyof Tally)[]) total[name] += tally[name]
  } catch (error) {
    process.stdout.write(`seed ${world}: npm test -- fairness ${STEPS_PER_WORLD} ${world}\n`)
    throw error
  }
}
process.stdout.write(
  `${total.steps} steps from seed ${seed}: ${total.modestGranted} requests within the fair share, none refused; ` +
    `${total.greedyGranted} of others granted and ${total.greedyRefused} refused\n`,
)
if (total.greedyRefused === 0) {
  process.stdout.write('nobody was refused, so nothing was shared\n')
  process.exitCode = 1
}

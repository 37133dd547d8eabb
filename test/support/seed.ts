import process from 'node:process'

/**
 * The seed of random tests: that of the CI run, so that a retry replays it, else a new one. A failing
 * test prints it; `TIDINGS_TEST_SEED=n` repeats the run.
 */
export function testSeed(): number {
  // biome-ignore lint/style/noProcessEnv: the CI run gives its seed to all its tests.
  const given = process.env['TIDINGS_TEST_SEED']
  if (given === undefined) return Math.floor(Math.random() * 2 ** 31)
  if (!/^\d+$/.test(given)) throw new Error(`TIDINGS_TEST_SEED=${given} is not a number`)
  return Number(given)
}

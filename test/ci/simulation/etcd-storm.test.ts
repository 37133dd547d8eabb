/**
 * The promises of etcd, checked on simulated clusters under random faults. `node <this file> 500`
 * runs 500 clusters.
 */
import process from 'node:process'
import { test } from 'node:test'
import { Storm } from '../../simulation/etcd/checks/storm.ts'
import { testSeed } from '../../support/seed.ts'

const given = Number(process.argv[2])
const clusters = given > 0 ? given : 20

test('a simulated cluster loses and invents nothing under random faults', (context) => {
  const first = testSeed()
  context.diagnostic(`seed ${first}`)
  const counts = new Map<string, number>()
  for (let index = 0; index < clusters; index++) {
    const seed = first + index
    const storm = new Storm([3, 3, 5][index % 3] ?? 3, seed)
    try {
      storm.run(1_000)
    } catch (error) {
      throw new Error(`with TIDINGS_TEST_SEED=${seed}: ${(error as Error).stack}`)
    }
    for (const [what, count] of storm.counts) counts.set(what, (counts.get(what) ?? 0) + count)
  }
  for (const [what, count] of [...counts].sort()) context.diagnostic(`${what}: ${count}`)
})

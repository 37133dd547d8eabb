/**
 * npm test -- model [--queries N] [--seed N]
 *
 * Compares the answers to random queries with those of a plain model, during concurrent writes.
 */
import { parseArgs } from 'node:util'
import { testSeed } from '../../support/seed.ts'
import { print } from '../../worlds/campaign.ts'
import { campaign } from './campaign.ts'

const { values } = parseArgs({
  options: { queries: { type: 'string', default: '100000' }, seed: { type: 'string' } },
})
const seed = values.seed === undefined ? testSeed() : Number(values.seed)
const queries = Number(values.queries)
const startedAt = performance.now()
print(`seed ${seed}, ${queries} queries`)
const tally = await campaign({
  seed,
  queries,
  onProgress: (done) => {
    if (done % 10_000 === 0) print(`${done} queries`)
  },
})
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
print(`no difference in ${seconds} s: ${JSON.stringify(tally)}`)

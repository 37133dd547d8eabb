/**
 * npm run test:model -- [--queries N] [--seed N]
 *
 * Compares the answers to random queries with those of a plain model, during concurrent writes.
 */
import { parseArgs } from 'node:util'
import { testSeed } from '../../support/seed.ts'
import { campaign } from './campaign.ts'

const { values } = parseArgs({
  options: { queries: { type: 'string', default: '100000' }, seed: { type: 'string' } },
})
const seed = values.seed === undefined ? testSeed() : Number(values.seed)
const queries = Number(values.queries)
const startedAt = performance.now()
process.stdout.write(`seed ${seed}, ${queries} queries\n`)
const tally = await campaign({
  seed,
  queries,
  onProgress: (done) => {
    if (done % 10_000 === 0) process.stdout.write(`${done} queries\n`)
  },
})
const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
process.stdout.write(`no difference in ${seconds} s: ${JSON.stringify(tally)}\n`)

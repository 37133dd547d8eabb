/**
 * What a created event costs when it comes back: from the etcd watch into memory.
 *
 *   npm run bench -- follow                   this version
 *   npm run bench -- follow /path/to/other   and another one, by turns
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from './support/request-costs.ts'

const own = fileURLToPath(new URL('..', import.meta.url))
const roots = [...process.argv.slice(2), own]
const rounds = 5
const measured = fileURLToPath(new URL('./support/follow-cost.ts', import.meta.url))

for (const kind of ['own alike', 'other alike', 'own varied', 'other varied']) {
  const costs = roots.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, root] of roots.entries()) {
      costs[index]?.push(Number(execFileSync(process.execPath, [measured, root, kind])))
    }
  }
  for (const [index, root] of roots.entries()) {
    const sorted = (costs[index] ?? []).toSorted((one, other) => one - other)
    const spread = `${sorted[0]?.toFixed(1)} to ${sorted.at(-1)?.toFixed(1)}`
    process.stdout.write(`${kind}: ${median(sorted).toFixed(1)} µs (${spread}) ${root}\n`)
  }
}

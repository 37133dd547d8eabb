import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { plantedBugs } from '../../nightly/mirror-chaos/planted.ts'
import { withPatches } from '../../simulation/kernel/interception.ts'

const root = new URL('../../../', import.meta.url)

for (const { name, patches } of plantedBugs) {
  test(`fits the planted bug ${name} into the sources`, () => {
    for (const [file, changes] of Map.groupBy(patches, (patch) => patch.file)) {
      withPatches(readFileSync(new URL(file, root), 'utf8'), changes)
    }
  })
}

/** Planted faults: each still fits the production code, and some of them are found. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import { withPatches } from '../../simulation/kernel/interception.ts'
import { blindSpots, plantedFaults } from '../../simulation/planted/faults.ts'
import { knownDefects } from '../../simulation/planted/known-defects.ts'
import { mirrorFaults } from '../../simulation/planted/mirror-faults.ts'
import type { PlantedFault } from '../../simulation/planted/planted-fault.ts'
import { argumentsOf, search } from '../../simulation/planted/search.ts'

const root = new URL('../../../', import.meta.url)

/** The limit that the simulation promises, for both searches together. */
const secondsMax = 55

test('changes one place of a file with each planted fault, so that it can still be parsed', () => {
  const wrong: string[] = []
  for (const { name, patches } of plantedFaults) {
    for (const [file, changes] of Map.groupBy(patches, (patch) => patch.file)) {
      try {
        stripTypeScriptTypes(withPatches(readFileSync(new URL(file, root), 'utf8'), changes))
      } catch (error) {
        wrong.push(`${name}: ${file}: ${String(error)}`)
      }
    }
  }
  assert.deepEqual(wrong, [])
})

test('gives each planted fault a name of its own, and each blind spot the name of a fault', () => {
  const names = plantedFaults.map(({ name }) => name)
  assert.deepEqual([...new Set(names)], names)
  assert.deepEqual(
    [...blindSpots.keys()].filter((name) => !names.includes(name)),
    [],
  )
})

test('finds the known defects', () => finds(knownDefects))

test('finds a missing fence and a wrong rule for a new uid in a mirror', () => {
  const names = ['mirror-writes-unfenced', 'mirror-keeps-the-first-uid']
  return finds(mirrorFaults.filter(({ name }) => names.includes(name)))
})

async function finds(faults: readonly PlantedFault[]): Promise<void> {
  const results = await Promise.all(
    faults.map(async (fault) => {
      const args = argumentsOf(fault, { isPlanted: true })
      const { violation, failure } = await search(args, { seed: 1, seconds: secondsMax })
      return { name: fault.name, isFound: violation !== undefined, failure }
    }),
  )
  const found = faults.map(({ name }) => ({ name, isFound: true, failure: undefined }))
  assert.deepEqual(results, found)
}

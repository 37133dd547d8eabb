import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../../src/lib/json.ts'
import { inCallerNames, withAllowedTypes } from './caller-fields.ts'
import { withCounts } from './our-form.ts'
import { loadRecording, type Step, SUITES } from './recording.ts'

const root = join(import.meta.dirname, '../../..')
const page = textOf('docs/reference/compatibility.md')

interface Row {
  readonly id: string
  readonly shownBy: readonly string[]
}

/**
 * The rows of the table: an id in the first column, in the last the suites or tests that show it.
 */
const rows: readonly Row[] = page
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => cells[1]?.startsWith('`') === true)
  .map((cells) => ({
    id: names(cells[1])[0] ?? '',
    shownBy: names(cells.at(-2)),
  }))

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function names(cell = ''): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

/** Which suites have a step that differs in this way. */
const used = new Map<string, Set<string>>()
for (const suite of SUITES) {
  for (const id of loadRecording(suite).steps.flatMap(differencesOf)) {
    used.set(id, (used.get(id) ?? new Set()).add(suite))
  }
}

function differencesOf(step: Step): readonly string[] {
  const { json, frames = [] } = step.answer
  const trees = step.match === undefined ? [json ?? {}, ...frames] : []
  const isCore = !step.path.startsWith('/apis/')
  const isChangedBy = (change: (tree: Json) => Json): boolean =>
    trees.some((tree) => !isDeepStrictEqual(change(tree), tree))
  return [
    ...(step.ours === undefined ? [] : [step.ours.difference]),
    ...(!isCore && isChangedBy(inCallerNames) ? ['caller-field-names'] : []),
    ...(!isCore && isChangedBy(withAllowedTypes) ? ['allowed-types-are-named'] : []),
    ...(step.ours === undefined && isChangedBy(withCounts) ? ['tables-have-counts'] : []),
  ]
}

test('every difference of a step has its row in docs/reference/compatibility.md', () => {
  const ids = rows.map(({ id }) => id)
  assert.deepEqual(
    [...used.keys()].filter((id) => !ids.includes(id)),
    [],
  )
  assert.equal(new Set(ids).size, ids.length)
})

test('every row of docs/reference/compatibility.md names the suites that show it, or a test that names it', () => {
  assert.notEqual(rows.length, 0)
  for (const { id, shownBy } of rows) {
    const files = shownBy.filter((name) => name.includes('/'))
    const suites = shownBy.filter((name) => !name.includes('/'))
    assert.notEqual(shownBy.length, 0, id)
    assert.deepEqual(suites, [...(used.get(id) ?? [])].sort(), id)
    for (const file of files)
      assert.ok(textOf(file).includes(id), `${id}: ${file} does not mention it`)
  }
})

test('every suite is played', () => {
  assert.match(textOf('test/ci/conformance/conformance.test.ts'), /^ {2}playAll\(SUITES\)$/m)
})

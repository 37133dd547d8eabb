import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../lib/log/log.ts'
import { missingSettings, warnOfMissingSettings } from './launcher-settings.ts'

const ARENA = { MALLOC_ARENA_MAX: '1' }
const SMALL = '--max-semi-space-size=8'

test('names the settings that are missing', () => {
  const both = ['NODE_OPTIONS=--max-semi-space-size=8', 'MALLOC_ARENA_MAX=1']
  assert.deepEqual(missingSettings({ execArgv: [], env: {} }), both)
  assert.deepEqual(missingSettings({ execArgv: [SMALL], env: {} }), both.slice(1))
  assert.deepEqual(missingSettings({ execArgv: [], env: { ...ARENA } }), both.slice(0, 1))
})

test('finds the settings in the options of Node and in its command line', () => {
  for (const text of [SMALL, `--max-old-space-size=512 ${SMALL}`, '--max_semi_space_size=16']) {
    assert.deepEqual(missingSettings({ execArgv: [], env: { ...ARENA, NODE_OPTIONS: text } }), [])
  }
  assert.deepEqual(missingSettings({ execArgv: [SMALL], env: ARENA }), [])
  const large = { execArgv: ['--max-semi-space-size=64'], env: { ...ARENA, NODE_OPTIONS: SMALL } }
  assert.equal(missingSettings(large).length, 1)
})

test('warns once, with what to do', () => {
  const said: unknown[] = []
  const log = { ...silentLog, warn: (...args: unknown[]) => void said.push(args) }
  warnOfMissingSettings(log, { execArgv: [SMALL], env: ARENA })
  assert.deepEqual(said, [])
  warnOfMissingSettings(log, { execArgv: [SMALL], env: {} })
  assert.match(JSON.stringify(said), /set MALLOC_ARENA_MAX=1/)
  assert.equal(said.length, 1)
})

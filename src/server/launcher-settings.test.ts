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

test('asks for a limit of the heap if V8 does not know of the memory limit', () => {
  const env = { ...ARENA, NODE_OPTIONS: SMALL }
  const old = 'NODE_OPTIONS=--max-old-space-size=192'
  assert.deepEqual(missingSettings({ execArgv: [], env }, 384), [old])
  assert.deepEqual(missingSettings({ execArgv: ['--max-old-space-size=512'], env }, 384), [old])
  assert.deepEqual(missingSettings({ execArgv: ['--max-old-space-size=256'], env }, 384), [])
  const both = 'NODE_OPTIONS=--max-semi-space-size=8 --max-old-space-size=192'
  assert.deepEqual(missingSettings({ execArgv: [], env: ARENA }, 384), [both])
})

test('warns once, with what to do', () => {
  const said: unknown[] = []
  const log = { ...silentLog, warn: (...args: unknown[]) => void said.push(args) }
  warnOfMissingSettings(log, undefined, { execArgv: [SMALL], env: ARENA })
  assert.deepEqual(said, [])
  warnOfMissingSettings(log, undefined, { execArgv: [SMALL], env: {} })
  assert.match(JSON.stringify(said), /set MALLOC_ARENA_MAX=1/)
  assert.equal(said.length, 1)
})

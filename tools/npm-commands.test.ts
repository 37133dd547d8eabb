import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unknownCommands } from './npm-commands.ts'

test('finds scripts, suites, benchmarks and tools that do not exist', () => {
  const wrong = [
    'npm run test:memory',
    'npm test -- memories',
    'npm run bench -- costs',
    'npm run --silent tools -- etcds',
  ]
  for (const command of wrong) {
    assert.deepEqual(unknownCommands(`Run \`${command}\`, or \`npm run build\`.`), [command])
  }
})

test('accepts those that exist, with and without arguments', () => {
  const text = `npm test, npm test -- memory --minutes 3, npm test -- --list, npm run bench,
    npm run bench -- cost --only get, npm run tools -- etcd, npm run dist -- --arch=arm64`
  assert.deepEqual(unknownCommands(text), [])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverCommand } from './commands.ts'
import type { Options } from './options.ts'
import { parseFlags } from './parse.ts'

const parsed = (...flags: readonly string[]) =>
  parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:2379', ...flags])

function optionsOf(...flags: readonly string[]): Options {
  const result = parsed(...flags)
  assert.equal(result.kind, 'run', JSON.stringify(result))
  return result.options
}

function mistakesOf(...flags: readonly string[]): string {
  const result = parsed(...flags)
  assert.equal(result.kind, 'mistakes')
  return result.mistakes.join('\n')
}

const places: readonly (readonly [given: string, place: string])[] = [
  ['file:///var/lib/history', 'file:///var/lib/history'],
  ['file:///var/lib/history//', 'file:///var/lib/history'],
  ['s3://my-bucket', 's3://my-bucket'],
  ['s3://my-bucket/', 's3://my-bucket'],
  ['s3://my.bucket/tidings/prod-1/', 's3://my.bucket/tidings/prod-1'],
]

for (const [given, place] of places) {
  test(`history flags: accepts ${given}`, () => {
    assert.equal(optionsOf(`--history=${given}`).history, place)
  })
}

const refused: readonly (readonly [given: string, mistake: RegExp])[] = [
  ['/var/lib/history', /"\/var\/lib\/history" is not a URL: write file:\/\/\/var\/lib\/history/],
  ['history', /"history" is not a URL: write file:\/\/\/var\/lib/],
  ['file://var/lib', /"file:\/\/var\/lib" has no absolute path: write three slashes/],
  ['file://', /has no absolute path/],
  ['file:///', /"file:\/\/\/" is not the URL of a directory/],
  ['file:///a/../b', /is not the URL of a directory: write a path without %, \?, # and \.\./],
  ['file:///a%20b', /is not the URL of a directory/],
  ['gs://bucket', /the scheme "gs" is not known: write file:\/\/\/.* or s3:\/\/my-bucket/],
  ['s3://', /"" is not the name of a bucket/],
  ['s3://Bucket/a', /"Bucket" is not the name of a bucket: write 3 to 63 lower-case letters/],
  ['s3://bucket//a', /"\/a" cannot be the prefix/],
  ['s3://bucket/a b', /"a b" cannot be the prefix/],
  ['s3://bucket/.a', /"\.a" cannot be the prefix/],
  [`s3://bucket/${'a'.repeat(256)}`, /cannot be the prefix: write up to 255/],
  ['s3://bucket/a?region=x', /the URL has credentials or options: give them in the environment/],
]

for (const [given, mistake] of refused) {
  test(`history flags: refuses ${given.slice(0, 40)}`, () => {
    assert.match(mistakesOf(`--history=${given}`), mistake)
  })
}

test('history flags: a message does not repeat credentials', () => {
  for (const url of ['s3://key:secret@bucket/a', 'https://key:secret@host/bucket']) {
    assert.doesNotMatch(mistakesOf(`--history=${url}`), /secret/)
  }
})

test('history flags: each needs --history', () => {
  for (const flag of [
    '--history-cache-dir=/cache',
    '--history-cache-bytes=1Gi',
    '--history-segment-interval=1m',
    '--history-segment-bytes=8Mi',
    '--history-reader-memory=1Gi',
    '--history-reader-threads=2',
    '--history-query-timeout=30s',
  ]) {
    const [name = ''] = flag.split('=')
    assert.match(mistakesOf(flag), new RegExp(`^${name} has no effect without --history: add`))
    optionsOf('--history=file:///history', flag)
  }
})

test('history flags: sizes and times have bounds', () => {
  const mistakes = (flag: string): string => mistakesOf('--history=s3://bucket', flag)
  assert.match(mistakes('--history-cache-bytes=0'), /0 is too small: write 256Mi or more$/)
  assert.match(mistakes('--history-cache-bytes=10GB'), /"10GB" is not a whole number of bytes/)
  assert.match(mistakes('--history-segment-bytes=1Ki'), /1Ki is too small: write 1Mi or more$/)
  assert.match(mistakes('--history-segment-bytes=2Gi'), /2Gi is too large: write 1Gi or less$/)
  assert.match(mistakes('--history-reader-memory=64Mi'), /64Mi is too small: write 128Mi or more/)
  assert.match(mistakes('--history-reader-threads=0'), /between 1 and 64/)
  assert.match(mistakes('--history-segment-interval=10ms'), /write a duration between 1s and 24h/)
  assert.match(mistakes('--history-segment-interval=25h'), /write a duration between 1s and 24h/)
  assert.match(mistakes('--history-query-timeout=0'), /0 is too short/)
})

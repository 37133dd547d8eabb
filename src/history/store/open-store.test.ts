import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { DirectoryStore } from './directory-store.ts'
import { openStore } from './open-store.ts'

test('openStore: file:// is a directory, whose files are local', async () => {
  const store = await openStore('file:///srv/tidings/archive', {})
  assert.ok(store instanceof DirectoryStore)
  assert.equal(store.localPath('a/b'), '/srv/tidings/archive/a/b')
})

test('openStore: a bucket, with or without a prefix, has no local files', async () => {
  for (const url of ['s3://archive', 's3://archive/events/of/us']) {
    assert.equal((await openStore(url, {})).localPath, undefined)
  }
})

test('openStore: anything else is an error that does not repeat it', async () => {
  for (const url of ['/srv', 'file://srv', 'gs://x', 's3://', 's3://k:secret@x/y', 's3://x/../y']) {
    await assert.rejects(openStore(url, {}), (error: Error) => {
      assert.match(error.message, /file:\/\/\/path\/of\/a\/directory or s3:\/\/bucket\/prefix/)
      return !error.message.includes('secret')
    })
  }
})

test('openStore: loads the client for S3 for a bucket, and not for a directory', () => {
  const module = join(import.meta.dirname, 'open-store.ts')
  const loadedFor = (url: string): string => {
    const program = `
      import { registerHooks } from 'node:module'
      let isLoaded = false
      registerHooks({
        resolve(specifier, context, next) {
          isLoaded ||= specifier.startsWith('@aws-sdk/')
          return next(specifier, context)
        },
      })
      const { openStore } = await import(${JSON.stringify(module)})
      await openStore(${JSON.stringify(url)}, {})
      console.log(isLoaded)`
    return String(execFileSync(process.execPath, ['--input-type=module', '--eval', program])).trim()
  }
  assert.equal(loadedFor('file:///srv/archive'), 'false')
  assert.equal(loadedFor('s3://archive'), 'true')
})

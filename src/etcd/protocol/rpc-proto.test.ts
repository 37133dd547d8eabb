import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const here = import.meta.dirname
const tools = join(here, '../../../node_modules/.bin')

test('rpc.proto: the generated code is up to date (npx buf generate, see buf.gen.yaml)', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-proto-'))
  try {
    const template = {
      version: 'v2',
      plugins: [{ local: join(tools, 'protoc-gen-es'), out: folder, opt: ['target=ts'] }],
    }
    await promisify(execFile)(
      process.execPath,
      [
        join(here, '../../../node_modules/@bufbuild/buf/bin/buf'),
        'generate',
        '--template',
        JSON.stringify(template),
        join(here, 'rpc.proto'),
      ],
      { env: { PATH: [tools, '/usr/bin', '/bin'].join(delimiter), HOME: folder } },
    )
    assert.equal(
      await readFile(join(here, 'rpc_pb.ts'), 'utf8'),
      await readFile(join(folder, 'rpc_pb.ts'), 'utf8'),
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import { Rbac } from './rbac.ts'
import { loadPolicyFiles, overlaid } from './rbac-files.ts'

function role(name: string, rest = 'rules: []'): string {
  return `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${name}}\n${rest}\n`
}

describe('loadPolicyFiles', () => {
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-rbac-'))
  })
  after(() => rm(folder, { recursive: true }))

  async function file(name: string, text: string): Promise<string> {
    const path = join(folder, name)
    await writeFile(path, text)
    return path
  }

  async function namesIn(...paths: readonly string[]): Promise<readonly string[]> {
    return (await loadPolicyFiles(paths)).objects.map(({ name }) => name)
  }

  test('all documents of a file and all YAML and JSON files of a folder are read, except hidden ones', async () => {
    const inner = join(folder, 'inner')
    await mkdir(join(inner, '..data'), { recursive: true })
    await writeFile(join(inner, '..data', 'b.yaml'), role('three'))
    await symlink(join('..data', 'b.yaml'), join(inner, 'b.yaml'))
    await writeFile(join(inner, 'a.yml'), `---\n${role('one')}---\n# nothing\n---\n${role('two')}`)
    await writeFile(join(inner, 'c.json'), JSON.stringify({ kind: 'List', items: [] }))
    await writeFile(join(inner, '.hidden.yaml'), 'no: {')
    await writeFile(join(inner, 'README.md'), 'no: {')
    const single = await file('single.policy', role('four'))
    assert.deepEqual(await namesIn(inner, single), ['one', 'two', 'three', 'four'])
  })

  test('files with unchanged content give the current policy itself', async () => {
    const path = await file('same.yaml', role('one'))
    const first = await loadPolicyFiles([path])
    assert.equal(await loadPolicyFiles([path], first), first)
    await writeFile(path, role('two'))
    assert.notEqual(await loadPolicyFiles([path], first), first)
  })

  test('a policy with mistakes is refused, with file, document and field of each', async () => {
    const path = await file(
      'broken.yaml',
      `${role('fine')}---\n${role('bad', 'rules: [{verbs: [], apiGroups: [""], resources: [x]}]')}---\n${role('fine')}---\nkind: Pod\n`,
    )
    await assert.rejects(loadPolicyFiles([path]), (error) => {
      const text = String(error)
      return [
        /broken\.yaml, document 2: rules\[0\]\.verbs: must not be empty/,
        /document 3: ClusterRole fine is already defined in .*broken\.yaml, document 1/,
        /document 4: kind: "Pod" is not one of/,
      ].every((pattern) => pattern.test(text))
    })
  })

  test('an error about invalid YAML has the line, and quotes nothing of it', async () => {
    const path = await file('no.yaml', `${role('fine')}---\na: b\n  secret-word: [\n`)
    await assert.rejects(loadPolicyFiles([path]), (error) => {
      assert.match(String(error), /no\.yaml, document 2: line [678]: not YAML/)
      return !String(error).includes('secret-word')
    })
  })

  test('a binding to a missing role is logged with role, file and document', async () => {
    const binding =
      role('lost').replace('ClusterRole\n', 'ClusterRoleBinding\n').replace('rules: []', '') +
      'roleRef: {kind: ClusterRole, name: gone}\n'
    const path = await file('dangling.yaml', `${role('there')}---\n${binding}`)
    const lines: LogFields[] = []
    const log = {
      ...silentLog,
      warn: (msg: string, fields?: LogFields) => lines.push({ msg, ...fields }),
    }
    const rbac = await Rbac.open({ paths: [path], eventsGroup: 'events.k8s.io', log })
    rbac.stop()
    assert.deepEqual(lines, [
      {
        msg: 'Binding refers to a role that does not exist',
        binding: 'ClusterRoleBinding lost',
        role: 'ClusterRole gone',
        file: `${path}, document 2`,
      },
    ])
  })

  test('a missing file and a too large one are refused', async () => {
    await assert.rejects(loadPolicyFiles([join(folder, 'none.yaml')]), /none\.yaml/)
    const large = await file('large.yaml', `# ${'x'.repeat(4 * 1024 * 1024)}`)
    await assert.rejects(loadPolicyFiles([large]), /large\.yaml: a policy may have at most/)
  })

  test('an object of a policy replaces the built-in one of the same kind and name', async () => {
    const path = await file('view.yaml', role('view'))
    const { objects } = await loadPolicyFiles([path])
    const builtin = { kind: 'Role', namespace: undefined, name: 'view' } as never
    const binding = { kind: 'Binding', namespace: undefined, name: 'view' } as never
    assert.deepEqual(overlaid([builtin, binding], objects), [objects[0], binding])
  })
})

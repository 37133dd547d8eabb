import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import type { Attributes } from '../attributes.ts'
import { Rbac } from './rbac.ts'
import {
  EVERY_CLUSTER,
  loadPolicyFiles as loadFiles,
  overlaid,
  type PolicyFiles,
} from './rbac-files.ts'

function role(name: string, rest = 'rules: []'): string {
  return `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${name}}\n${rest}\n`
}

function binding(name: string, user: string, to = name): string {
  const ref = `roleRef: {kind: ClusterRole, name: ${to}}\nsubjects: [{kind: User, name: ${user}}]`
  return role(name, ref).replace('kind: ClusterRole\n', 'kind: ClusterRoleBinding\n')
}

const eventsGroup = 'events.k8s.io'

function loadPolicyFiles(paths: readonly string[], current?: PolicyFiles): Promise<PolicyFiles> {
  return loadFiles({ paths, clusterName: 'local' }, current)
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
    return namesOf(await loadPolicyFiles(paths), 'local')
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

  test('returns the current policy itself when the content of the files is unchanged', async () => {
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
    const lost =
      role('lost').replace('ClusterRole\n', 'ClusterRoleBinding\n').replace('rules: []', '') +
      'roleRef: {kind: ClusterRole, name: gone}\n'
    const path = await file('dangling.yaml', `${role('there')}---\n${lost}`)
    const lines: LogFields[] = []
    const log = {
      ...silentLog,
      warn: (msg: string, fields?: LogFields) => lines.push({ msg, ...fields }),
    }
    const rbac = await Rbac.open({ paths: [path], clusterName: 'local', eventsGroup, log })
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

  test('refuses a missing file and one that is too large', async () => {
    await assert.rejects(loadPolicyFiles([join(folder, 'none.yaml')]), /none\.yaml/)
    const large = await file('large.yaml', `# ${'x'.repeat(4 * 1024 * 1024)}`)
    await assert.rejects(loadPolicyFiles([large]), /large\.yaml: a policy may have at most/)
  })

  test('an object of a policy replaces the built-in one of the same kind and name', async () => {
    const path = await file('view.yaml', role('view'))
    const { objects = [] } = (await loadPolicyFiles([path])).scopes.get('local') ?? {}
    const builtin = { kind: 'Role', namespace: undefined, name: 'view' } as never
    const binding = { kind: 'Binding', namespace: undefined, name: 'view' } as never
    assert.deepEqual(overlaid([builtin, binding], objects), [objects[0], binding])
  })
})

function namesOf({ scopes }: PolicyFiles, scope: string): readonly string[] {
  return (scopes.get(scope)?.objects ?? []).map(({ name }) => name)
}

describe('the policy files of clusters', () => {
  let root: string
  let count = 0

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'tidings-rbac-'))
  })
  after(() => rm(root, { recursive: true }))

  /** A new folder with these files. */
  async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
    const folder = join(root, String(count++))
    await mkdir(folder)
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    }
    return folder
  }

  const open = async (files: Readonly<Record<string, string>>, log = silentLog): Promise<Rbac> => {
    const paths = [await folderOf(files)]
    return Rbac.open({ paths, clusterName: 'home', eventsGroup, log })
  }

  /** The clusters in which a user may list events. */
  async function clustersOf(rbac: Rbac, user: string): Promise<readonly string[]> {
    const allowed: string[] = []
    for (const cluster of ['home', 'a', 'b', 'c', '*']) {
      const list = { isResource: true, verb: 'list', group: '', version: 'v1', resource: 'events' }
      const attributes = { ...list, cluster, subresource: '', namespace: '', name: '', path: '' }
      const who = { name: user, groups: [] }
      const { verdict } = await rbac.decide(who, attributes as Attributes)
      if (verdict === 'allow') allowed.push(cluster)
      assert.equal(rbac.reasonFor(who, attributes as Attributes) !== undefined, verdict === 'allow')
      const rules = rbac.rulesFor(who, { cluster, namespace: 'n' })
      assert.equal(rules.length > 0, verdict === 'allow')
    }
    return allowed
  }

  const reader = role('reader', 'rules: [{verbs: [list], apiGroups: [""], resources: [events]}]')

  test('the folder decides in which clusters an object applies', async () => {
    const files = {
      'root.yaml': binding('of-root', 'root', 'view'),
      'clusters/a/of-a.yaml': binding('of-a', 'ada', 'view'),
      'clusters/b/of-b.yml': `${binding('of-b', 'bob', 'reader')}---\n${reader}`,
      'clusters/b/.hidden.yaml': 'no: {',
      'clusters/README.md': 'no: {',
      'clusters/_all/every.yaml': binding('every', 'eve', 'view'),
    }
    const rbac = await open(files)
    rbac.stop()
    assert.deepEqual(await clustersOf(rbac, 'root'), ['home'])
    assert.deepEqual(await clustersOf(rbac, 'ada'), ['a'])
    assert.deepEqual(await clustersOf(rbac, 'bob'), ['b'])
    assert.deepEqual(await clustersOf(rbac, 'eve'), ['home', 'a', 'b', 'c', '*'])
    assert.deepEqual(await clustersOf(rbac, 'mallory'), [])
  })

  test('the folder of the default cluster belongs to it, as the root does', async () => {
    const rbac = await open({ 'clusters/home/x.yaml': binding('x', 'ada', 'view') })
    rbac.stop()
    assert.deepEqual(await clustersOf(rbac, 'ada'), ['home'])
  })

  test('bindings refer to roles of their own cluster and of all clusters, and of no other', async () => {
    const lines: LogFields[] = []
    const log = { ...silentLog, warn: (_: string, fields?: LogFields) => lines.push(fields ?? {}) }
    const files = {
      'root.yaml': `${binding('to-a', 'root', 'of-a')}---\n${binding('to-all', 'ruth', 'of-all')}`,
      'clusters/a/roles.yaml': reader.replace('reader', 'of-a'),
      'clusters/b/x.yaml': binding('to-root', 'bob', 'of-a'),
      'clusters/_all/x.yaml': `${reader.replace('reader', 'of-all')}---\n${binding('e', 'eve', 'of-a')}`,
    }
    const rbac = await open(files, log)
    rbac.stop()
    assert.deepEqual(await clustersOf(rbac, 'ruth'), ['home'])
    for (const user of ['root', 'bob']) assert.deepEqual(await clustersOf(rbac, user), [])
    // A binding of all clusters grants the role of this name where there is one.
    assert.deepEqual(await clustersOf(rbac, 'eve'), ['a'])
    const dangling = lines.map(({ binding: name, role: to }) => `${name} -> ${to}`).sort()
    assert.deepEqual(dangling, [
      'ClusterRoleBinding e -> ClusterRole of-a',
      'ClusterRoleBinding to-a -> ClusterRole of-a',
      'ClusterRoleBinding to-root -> ClusterRole of-a',
    ])
  })

  test('a role that is aggregated in one cluster adds nothing in another', async () => {
    const label = 'labels: {rbac.authorization.k8s.io/aggregate-to-extra: "true"}'
    const aggregated = role(
      'extra',
      `aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-extra: "true"}}]}`,
    )
    const rbac = await open({
      'clusters/_all/x.yaml': `${aggregated}---\n${binding('e', 'eve', 'extra')}`,
      'clusters/a/x.yaml': reader.replace('name: reader', `name: reader, ${label}`),
    })
    rbac.stop()
    assert.deepEqual(await clustersOf(rbac, 'eve'), ['a'])
  })

  test('accepts objects of one name in several clusters, but not in all clusters as well', async () => {
    const twice = { 'clusters/a/x.yaml': reader, 'clusters/b/x.yaml': reader, 'x.yaml': reader }
    const files = await loadPolicyFiles([await folderOf(twice)])
    for (const scope of ['local', 'a', 'b']) assert.deepEqual(namesOf(files, scope), ['reader'])
    assert.deepEqual(namesOf(files, EVERY_CLUSTER), [])
    const again = await folderOf({ ...twice, 'clusters/_all/y.yaml': reader })
    await assert.rejects(
      loadPolicyFiles([again]),
      /clusters\/a\/x\.yaml, document 1: ClusterRole reader is already defined in .*_all\/y\.yaml/,
    )
  })

  test('refuses a folder that no cluster can have, and a file beside the folders', async () => {
    for (const name of ['Prod', 'a.b', '_any', '-a', 'a'.repeat(64), '*']) {
      const folder = await folderOf({ [`clusters/${name}/x.yaml`]: reader })
      await assert.rejects(loadPolicyFiles([folder]), (error) => {
        assert.ok(String(error).includes(`clusters/${name}: the name of this folder is neither`))
        return true
      })
    }
    const beside = await folderOf({ 'clusters/x.yaml': reader })
    await assert.rejects(loadPolicyFiles([beside]), /clusters\/x\.yaml: must be in a folder/)
  })

  test('the files of all clusters are limited by the number of clusters with files', async () => {
    const files: Record<string, string> = { 'clusters/_all/x.yaml': `# ${'x'.repeat(2 ** 20 - 2)}` }
    for (let at = 0; at < 15; at++) files[`clusters/c${at}/x.yaml`] = reader
    await loadPolicyFiles([await folderOf(files)])
    const more = await folderOf({ ...files, 'x.yaml': reader })
    await assert.rejects(loadPolicyFiles([more]), /_all\/x\.yaml: .* too much for 16 clusters/)
  })

  test('a changed file of one cluster is picked up', async () => {
    const folder = await folderOf({ 'clusters/a/x.yaml': binding('x', 'ada', 'view') })
    let onReload = (): void => {}
    const reloaded = new Promise<void>((resolve) => {
      onReload = resolve
    })
    const log = { ...silentLog, info: () => onReload() }
    const rbac = await Rbac.open({ paths: [folder], clusterName: 'home', eventsGroup, log })
    await mkdir(join(folder, 'clusters', 'b'))
    await writeFile(join(folder, 'clusters', 'b', 'x.yaml'), binding('x', 'ada', 'view'))
    await reloaded
    rbac.stop()
    assert.deepEqual(await clustersOf(rbac, 'ada'), ['a', 'b'])
  })
})

/**
 * JSON that JSON.stringify cannot make: duplicate names, numbers beyond the range of doubles, text
 * that is not JSON at all.
 */
export type Tree = null | boolean | number | string | Tree[] | Members | Raw

/** An object whose members keep their order and may have duplicate names. */
export class Members {
  entries: [string, Tree][]

  constructor(entries: [string, Tree][] = []) {
    this.entries = entries
  }

  static of(members: Readonly<Record<string, Tree>>): Members {
    return new Members(Object.entries(members))
  }
}

/** Inserted into the text verbatim. */
export class Raw {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Makes a tree from plain values. */
export function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return value.map(treeOf)
  if (typeof value !== 'object' || value === null) return value as Tree
  return new Members(Object.entries(value).map(([name, member]) => [name, treeOf(member)]))
}

export function treeText(tree: Tree): string {
  if (tree instanceof Raw) return tree.text
  if (Array.isArray(tree)) return `[${tree.map(treeText).join(',')}]`
  if (tree instanceof Members) {
    const members = tree.entries.map(
      ([name, value]) => `${JSON.stringify(name)}:${treeText(value)}`,
    )
    return `{${members.join(',')}}`
  }
  return JSON.stringify(tree)
}

/** Every list and object in the tree, itself included. */
export function containersIn(tree: Tree): (Tree[] | Members)[] {
  const found: (Tree[] | Members)[] = []
  const visit = (node: Tree): void => {
    if (Array.isArray(node)) {
      found.push(node)
      for (const element of node) visit(element)
    } else if (node instanceof Members) {
      found.push(node)
      for (const [, value] of node.entries) visit(value)
    }
  }
  visit(tree)
  return found
}

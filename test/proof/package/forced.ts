import ts from 'typescript'

/** What of a program makes the compiler believe something: casts, `!`, `any`, declarations of modules, switched-off lines. */
export function forcedIn(name: string, text: string): readonly string[] {
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.ESNext, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (isForced(node)) found.push(`${name}: ${node.getText()}`)
    ts.forEachChild(node, visit)
  }
  visit(source)
  for (const [comment] of text.matchAll(/\/[/*]\s*@ts-\w+.*/g)) found.push(`${name}: ${comment}`)
  return found
}

function isForced(node: ts.Node): boolean {
  if (ts.isAsExpression(node) || ts.isTypeAssertionExpression(node)) return !ts.isConstTypeReference(node.type)
  if (ts.isModuleDeclaration(node)) return true
  return ts.isNonNullExpression(node) || node.kind === ts.SyntaxKind.AnyKeyword
}

use clap::Args;
#[derive(Debug, Args)]
pub(crate) struct DefinitionArgs {}
pub(crate) fn run(_args: &DefinitionArgs) -> anyhow::Result<crate::exit::Outcome> { anyhow::bail!("not yet") }

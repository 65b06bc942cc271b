use clap::Args;
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {}
pub(crate) fn run(_args: &GenerateArgs) -> anyhow::Result<crate::exit::Outcome> { anyhow::bail!("not yet") }
